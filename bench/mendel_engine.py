"""A plan as an engine of bench/gpu: loaded by libmendel, inputs and outputs where its device has its memory, called as an application would."""
import ctypes
import os
import pathlib

import numpy

DTYPES = [numpy.float32, numpy.float16, None, numpy.float64, numpy.int8, numpy.uint8, numpy.int32, numpy.int64, numpy.bool_,
          numpy.int16, numpy.uint16, numpy.uint32, numpy.uint64, None, None, None, None]  # mendel_dtype


class Value(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_int), ("rank", ctypes.c_int), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("bytes", ctypes.c_size_t)]


class Driver:
    """The few calls of the CUDA driver that an application makes: memory, copies, one stream."""

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.stream = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(self.stream), ctypes.c_uint(1))

    def call(self, name, *arguments):
        code = getattr(self.cuda, name)(*arguments)
        if code != 0:
            raise RuntimeError(f"{name}: error {code}")

    def upload(self, array):
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(array.nbytes, 1)))
        self.call("cuMemcpyHtoD_v2", address, ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes))
        return address.value

    def download(self, address, array):
        self.call("cuMemcpyDtoH_v2", ctypes.c_void_p(array.ctypes.data), ctypes.c_uint64(address), ctypes.c_size_t(array.nbytes))

    def wait(self):
        self.call("cuStreamSynchronize", self.stream)


def open_plan(library, plan, device, threads, inputs):
    """(enqueue, wait, outputs) of the file `plan`."""
    mendel = ctypes.CDLL(os.fspath(library))
    mendel.mendel_load.restype, mendel.mendel_last_error.restype = ctypes.c_void_p, ctypes.c_char_p
    handle = ctypes.c_void_p(mendel.mendel_load(os.fsencode(plan), threads))

    def check(bad):
        if bad:
            raise RuntimeError(mendel.mendel_last_error().decode())

    def describe(which, k):
        value = Value()
        check(which(handle, k, ctypes.byref(value)) != 0)
        if DTYPES[value.dtype] is None:
            raise RuntimeError(f"'{value.name.decode()}' has a type that NumPy has not")
        return value.name.decode(), numpy.empty([value.shape[d] for d in range(value.rank)], DTYPES[value.dtype])

    check(not handle)
    given = [describe(mendel.mendel_input, k)[0] for k in range(mendel.mendel_input_count(handle))]
    sources = [numpy.ascontiguousarray(inputs[name]) for name in given]
    results = [describe(mendel.mendel_output, k)[1] for k in range(mendel.mendel_output_count(handle))]

    def pointers(addresses):
        return (ctypes.c_void_p * max(len(addresses), 1))(*addresses)

    if device == "cpu":
        ins, outs = pointers([array.ctypes.data for array in sources]), pointers([array.ctypes.data for array in results])
        return lambda: check(mendel.mendel_run(handle, ins, outs) != 0), lambda: None, lambda: results
    driver = Driver()  # in the primary context, which loading the plan has left current
    ins, places = pointers([driver.upload(array) for array in sources]), [driver.upload(array) for array in results]
    outs, run, stream = pointers(places), mendel.mendel_run_device, driver.stream
    run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]

    def outputs():
        for address, array in zip(places, results):
            driver.download(address, array)
        return results

    return lambda: check(run(handle, ins, outs, stream, None) != 0), driver.wait, outputs


def find_library(mendel):
    """libmendel beside the command `mendel`, of a build or of an installed archive."""
    folder = pathlib.Path(mendel).resolve().parent
    for place in (folder / "client/c_api/libmendel.so.0", folder.parent / "lib/libmendel.so.0"):
        if place.exists():
            return place
    raise RuntimeError(f"no libmendel.so.0 beside {mendel}")
