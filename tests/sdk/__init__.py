"""A stand-in for the QAIRT SDK: the real one's layout, flags, logs and exits, around a compiler that is real.

`sdk.make.make` writes it. What its tools hand each other is the ONNX graph itself, so that a context binary made with
it is a true one; every version and build id that it shows ends in `-standin`.
"""
