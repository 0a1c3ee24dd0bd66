"""What each tool's command line knows, by version; `sdk.flags` says how a line reads."""

from __future__ import annotations

_LEGACY_QUANTIZER = """
--algorithms +
--ignore_encodings .
--act_bitwidth i=8
--act_bw i=8 of=--act_bitwidth
--weights_bitwidth i=8
--weight_bw i=8 of=--weights_bitwidth
--bias_bitwidth i=8
--bias_bw i=8 of=--bias_bitwidth
--float_bitwidth i=32
--float_bw i=32 of=--float_bitwidth
--float_bias_bitwidth i=0
--float_bias_bw i=0 of=--float_bias_bitwidth
"""

_QUANTIZER = """
--act_quantizer_calibration s=min-max
--param_quantizer_calibration s=min-max
--act_quantizer_schema s=asymmetric
--param_quantizer_schema s=asymmetric
--percentile_calibration_value f=99.99
--use_per_channel_quantization .
--use_per_row_quantization .
--use_native_input_files .
--use_native_output_files .
--restrict_quantization_steps s
--keep_weights_quantized .
--use_aimet_quantizer . hidden
--include_data_invariant_ops . hidden
--use_dynamic_16_bit_weights . hidden
--pack_4_bit_weights . hidden
--dump_encoding_json . hidden
"""

_ONNX_CONVERTER = f"""
--input_network,-i p!
--output_path,-o s
--out_node,--out_name sa
--input_dim,-d 2a
--input_dtype 2a
--input_type,-t 2a
--input_encoding,-e +a
--input_layout,-l 2a
--custom_io s
--preserve_io *a
--dump_custom_io_config_template s
--dump_qairt_io_config_yaml s
--enable_framework_trace .
--dry_run ?
--debug ?
--no_simplification,-n .
--batch,-b i
--define_symbol,-s 2a
--quantization_overrides s
--keep_quant_nodes .
--disable_batchnorm_folding .
--keep_disconnected_nodes .
--apply_masked_softmax s=uncompressed
--packed_masked_softmax_inputs +
--packed_max_seq i=1
--input_list p
--float_fallback .
{_LEGACY_QUANTIZER}
{_QUANTIZER}
--param_quantizer s
--act_quantizer s
--use_native_dtype . of=--use_native_input_files
--disable_relu_squashing .
--dump_qairt_quantizer_command s
--copyright_file p
--overwrite_model_prefix .
--exclude_named_tensors .
--model_version s
--op_package_lib,-opl s
--converter_op_package_lib,-cpl s
--package_name,-p s one=package
--op_package_config,-opc + one=package
--arch_checker .
--validate_models .
--export_format s=cpp hidden
--disable_node_validation . hidden
--disable_qnn_op_config_validation . hidden
--dump_inferred_model . hidden
--dump_value_info . hidden
--keep_int64_inputs . hidden
--dumpIR . hidden
--preserve_onnx_output_order . since=2.35 hidden
--use_quantize_v2 . since=2.35 hidden
--quantizer_log s since=2.39 hidden
--quantizer_log_level s since=2.39 hidden
"""

_MODEL_LIB = """
--cpp,-c s!
--bin,-b s
--lib_targets,-t +a
--lib_name,-l s
--output_dir,-o s=./lib
--debug,-d .
"""

_QAIRT_CONVERTER = """
--input_network,-i p!
--output_path,-o s
--desired_input_shape,-d 2a until=2.35
--source_model_input_shape,-s 2a since=2.35
--desired_input_shape,-d 2a since=2.35 of=--source_model_input_shape
--out_tensor_node,--out_tensor_name sa
--source_model_input_datatype 2a
--source_model_input_layout,-l 2a
--desired_input_layout 2a since=2.35
--source_model_output_layout 2a since=2.35
--desired_output_layout 2a since=2.35
--desired_input_color_encoding,-e +a
--preserve_io_datatype . until=2.35
--preserve_io_datatype * since=2.35
--dump_io_config_template s until=2.35
--io_config s until=2.35
--dump_config_template s since=2.35
--config s since=2.35
--io_config s since=2.35 of=--config
--dry_run ?
--debug ?
--enable_framework_trace .
--quantization_overrides s until=2.35
--quantization_overrides,-q s since=2.35
--onnx_no_simplification . until=2.35
--onnx_skip_simplification,-oss . since=2.35
--onnx_no_simplification . since=2.35 of=--onnx_skip_simplification
--onnx_batch i until=2.35
--onnx_override_batch i since=2.35
--onnx_batch i since=2.35 of=--onnx_override_batch
--onnx_define_symbol 2a
--onnx_validate_models . since=2.35
--onnx_summary . since=2.35
--onnx_perform_sequence_construct_optimizer . since=2.35
--float_bitwidth i=32
--float_bias_bitwidth i=0
--model_version s until=2.35
--set_model_version s since=2.35
--model_version s since=2.35 of=--set_model_version
--copyright_file p
--converter_op_package_lib,-cpl s
--package_name,-p s one=package
--op_package_config,-opc + one=package
--backend s until=2.35
--soc_model s until=2.35
--target_backend s since=2.35
--target_soc_model s since=2.35
--backend s since=2.35 of=--target_backend
--soc_model s since=2.35 of=--target_soc_model
--export_format s=DLC_DEFAULT since=2.35
--lora_weight_list s since=2.35
--quant_updatable_mode s since=2.35
--dump_exported_onnx . since=2.35
--remove_unused_inputs . since=2.39
--preserve_onnx_output_order . since=2.39
--quantizer_log s since=2.39
--quantizer_log_level s since=2.39
--gguf_config s since=2.40
"""

_QAIRT_QUANTIZER = f"""
--input_dlc p! until=2.35
--output_dlc s until=2.35
--input_list p until=2.35
--float_fallback . until=2.35
--algorithms + until=2.35
--ignore_encodings . until=2.35
--config_file,-c s until=2.35
--preserve_io_datatype . until=2.35
--backend s until=2.35
--soc_model s until=2.35
--input_dlc,-i p! since=2.35
--output_dlc,-o s since=2.35
--input_list,-l p since=2.35
--enable_float_fallback,-f . since=2.35
--float_fallback . since=2.35 of=--enable_float_fallback
--apply_algorithms + since=2.35
--algorithms + since=2.35 of=--apply_algorithms
--ignore_quantization_overrides . since=2.35
--ignore_encodings . since=2.35 of=--ignore_quantization_overrides
--config,-c s since=2.35
--config_file s since=2.35 of=--config
--preserve_io_datatype * since=2.35
--enable_per_row_quantized_bias . since=2.35
--adjust_bias_encoding . since=2.35
--export_stripped_dlc . since=2.35
--use_quantize_v2 . since=2.35
--quantizer_log s since=2.39
--quantizer_log_level s since=2.39
--target_backend s since=2.35
--target_soc_model s since=2.35
--disable_dynamic_16_bit_weights . since=2.35 hidden
--calc_static_encodings . since=2.39 hidden
--act_bitwidth i=8
--weights_bitwidth i=8
--bias_bitwidth i=8
--float_bitwidth i=32
--float_bias_bitwidth i=0
{_QUANTIZER}
--param_quantizer s hidden
--act_quantizer s hidden
--op_package_lib,-opl s
--debug ?
"""

_CONTEXT_GENERATOR = """
--model s
--backend s!
--binary_file s!
--output_dir s
--backend_binary s
--model_prefix s
--op_packages s
--profiling_level s
--profiling_option s
--config_file s
--enable_intermediate_outputs .
--set_output_tensors s
--log_level s
--dlc_path s
--input_output_tensor_mem_type s
--platform_options s
--soc_model s since=2.40
--htp_socs s since=2.40
--vtcm_override s since=2.40
--optimization_level_override s since=2.40
--dlbc_override s since=2.40
--hvx_threads_override s since=2.40
--reference_weight_sharing_enabled_override s since=2.40
--adapter_weight_config s since=2.40
--data_format_config s since=2.40
--save_backend_op_mapping . since=2.50
--output_dlc s since=2.51
--version .
--help .
"""

_NET_RUN = """
--backend s!
--input_list s!
--model s
--retrieve_context s
--dlc_path s
--model_prefix s
--debug .
--output_dir s
--use_native_output_files .
--use_native_input_files .
--native_input_tensor_names s
--op_packages s
--profiling_level s
--profiling_option s since=2.40
--perf_profile s
--config_file s
--log_level s
--shared_buffer .
--synchronous .
--num_inferences s
--duration s
--keep_num_outputs s
--batch_multiplier s
--timeout s
--retrieve_context_timeout s
--max_input_cache_tensor_sets s
--max_input_cache_size_mb s
--set_output_tensors s
--use_mmap .
--validate_binary .
--platform_options s
--binary_updates s since=2.40
--version .
--help .
"""

_UTILITY = """
--context_binary s!
--json_file s!
--version .
--help .
"""

_VALIDATOR = """
--backend s!
--sdk_path s!
--dsp_type s!
--buildVariant s=aarch64-android
--testBackend .
--deviceId s
--coreVersion .
--libVersion .
--targetPath s=/data/local/tmp/platformValidator
--remoteHost s=localhost
--debug .
--socName s hidden
--socId s hidden
"""

TABLES = {
    "qnn-onnx-converter": _ONNX_CONVERTER,
    "qnn-model-lib-generator": _MODEL_LIB,
    "qairt-converter": _QAIRT_CONVERTER,
    "qairt-quantizer": _QAIRT_QUANTIZER,
    "qnn-context-binary-generator": _CONTEXT_GENERATOR,
    "qnn-net-run": _NET_RUN,
    "qnn-context-binary-utility": _UTILITY,
    "qnn-platform-validator": _VALIDATOR,
}
