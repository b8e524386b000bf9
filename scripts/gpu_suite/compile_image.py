"""Has the driver compile one kernel image for the first device, and keep the result in its cache.

usage: compile_image.py IMAGE
"""
import ctypes
import sys
from pathlib import Path


def main(path):
    driver = ctypes.CDLL("libcuda.so.1")
    context, module = ctypes.c_void_p(), ctypes.c_void_p()
    image = Path(path).read_bytes() + b"\0"
    for call in (
        lambda: driver.cuInit(0),
        lambda: driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0),
        lambda: driver.cuCtxSetCurrent(context),
        lambda: driver.cuModuleLoadDataEx(ctypes.byref(module), image, 0, None, None),
    ):
        code = call()
        if code != 0:
            raise SystemExit(f"{path}: error {code} of the driver")


if __name__ == "__main__":
    main(*sys.argv[1:])
