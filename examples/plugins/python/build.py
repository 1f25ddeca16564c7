"""Builds the plugin: one executable file with the program and the code of its messages.

    .venv/bin/python build.py NAME [--proto DIR]

The file begins with the path of the Python that builds it, which runs it as well, with the
packages that are installed there. Equal sources make an equal file, and so an equal checksum.
build/ has the same code unpacked, for the tests.
"""

import argparse
import pathlib
import shutil
import sys
import zipfile

from grpc_tools import protoc

HERE = pathlib.Path(__file__).resolve().parent
SHEBANG_BYTES_MAX = 127  # What every Linux and macOS takes.


def unpack(proto, build):
    """Put the sources, and the code of the messages, into the directory build."""
    shutil.rmtree(build, ignore_errors=True)
    shutil.copytree(HERE / "src", build, ignore=shutil.ignore_patterns("__pycache__"))
    files = sorted(str(path) for path in proto.glob("quorate/plugin/v1/*.proto"))
    if not files:
        sys.exit(f"build.py: {proto} has no quorate/plugin/v1/*.proto")
    if status := protoc.main(["protoc", f"-I{proto}", f"--python_out={build}", *files]):
        sys.exit(status)
    for package in "quorate", "quorate/plugin", "quorate/plugin/v1":
        (build / package / "__init__.py").touch()


def pack(build, target):
    """Make an executable file of the directory build."""
    shebang = f"#!{sys.executable}\n".encode()
    if len(shebang) > SHEBANG_BYTES_MAX or b" " in shebang:
        sys.exit(f"build.py: the path {sys.executable} is too long or has a space: make .venv elsewhere")
    fresh = target.with_name(target.name + ".new")
    with fresh.open("wb") as file:
        file.write(shebang)
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(build.rglob("*.py")):
                about = zipfile.ZipInfo(path.relative_to(build).as_posix())  # Of a fixed date.
                about.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(about, path.read_bytes())
    fresh.chmod(0o755)
    fresh.replace(target)


def main():
    """Build."""
    parser = argparse.ArgumentParser()
    parser.add_argument("target", type=pathlib.Path)
    parser.add_argument("--proto", type=pathlib.Path, default=HERE / "proto")
    parser.add_argument("--build", type=pathlib.Path, default=HERE / "build")
    arguments = parser.parse_args()
    unpack(arguments.proto, arguments.build)
    pack(arguments.build, arguments.target)


main()
