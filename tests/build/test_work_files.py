"""What counts as made by a tool."""

from __future__ import annotations

from qnnci.build.work import tool_stage


def test_a_link_is_not_what_was_to_be_made(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("of somebody else")
    secret.chmod(0o600)
    room, folder = tmp_path / ".scratch-convert", tmp_path / "made"
    (folder / "logs").mkdir(parents=True)
    made = tool_stage(
        argv=["ln", "-s", str(secret), "net.dlc"],
        command_file=str(folder / "logs/convert.command"),
        environment={},
        scratch=str(room),
        folder=str(folder),
        makes={str(room / "net.dlc"): "net.dlc"},
        may_make={},
        files={},
    )
    assert (made["exit_code"], made["missing"]) == (0, ["net.dlc"])
    assert secret.stat().st_mode & 0o777 == 0o600
    assert not (folder / "net.dlc").is_symlink()
