"""Asks a server with the client of Triton or of KServe and compares the bits with a file.

    python clients.py tritonclient.http|kserve ADDRESS INPUT.npy EXPECTED.npy
"""

import asyncio
import sys

import numpy


def same(found, expected, what):
    found = numpy.asarray(found, dtype=numpy.float32).reshape(expected.shape)
    assert (found.view(numpy.uint32) == expected.view(numpy.uint32)).all(), f"{what}: the bits differ"
    print(f"{what}: the same bits")


def triton(address, given, expected):
    import tritonclient.http as client
    from tritonclient.utils import InferenceServerException

    server = client.InferenceServerClient(address)
    assert server.is_server_live() and server.is_server_ready() and server.is_model_ready("plane")
    assert server.get_server_metadata()["name"] == "lamo"
    metadata = server.get_model_metadata("plane")
    assert metadata["inputs"][0]["name"] == "permeability", metadata
    assert server.get_model_repository_index()[0]["state"] == "READY"
    for binary in (True, False):
        for dtype in ("FP32", "FP64"):
            values = given.astype({"FP32": numpy.float32, "FP64": numpy.float64}[dtype])
            tensor = client.InferInput("permeability", values.shape, dtype)
            tensor.set_data_from_numpy(values, binary_data=binary)
            output = client.InferRequestedOutput("pressure", binary_data=binary)
            answer = server.infer("plane", [tensor], model_version="1", outputs=[output], request_id="7")
            assert answer.get_response()["id"] == "7"
            same(answer.as_numpy("pressure"), expected, f"triton, {dtype}, {'binary' if binary else 'JSON'}")
    tensor = client.InferInput("permeability", given.shape, "FP32")
    tensor.set_data_from_numpy(given)
    same(server.infer("plane", [tensor]).as_numpy("pressure"), expected, "triton, all outputs")
    waiting = [server.async_infer("plane", [tensor]) for _ in range(8)]
    for answer in waiting:
        same(answer.get_result().as_numpy("pressure"), expected, "triton, at the same time")
    try:
        wrong = client.InferInput("permeability", [5], "FP32")
        wrong.set_data_from_numpy(given.ravel()[:5])
        server.infer("plane", [wrong])
        raise AssertionError("a wrong shape was taken")
    except InferenceServerException as refused:
        print(f"triton, a wrong shape: {refused}")


async def kserve(address, given, expected):
    from kserve import InferInput, InferRequest, InferenceRESTClient, RESTConfig

    client = InferenceRESTClient(RESTConfig(protocol="v2", retries=1))
    base = f"http://{address}"
    assert await client.is_server_live(base) and await client.is_server_ready(base)
    assert await client.is_model_ready(base, "plane")
    for binary in (False, True):
        tensor = InferInput("permeability", list(given.shape), "FP32")
        tensor.set_data_from_numpy(given, binary_data=binary)
        request = InferRequest("plane", [tensor], request_id="7")
        answer = await client.infer(base, request, model_name="plane")
        same(answer.outputs[0].as_numpy(), expected, f"kserve, {'binary' if binary else 'JSON'}")


def main():
    name, address, given, expected = sys.argv[1:]
    given, expected = numpy.load(given), numpy.load(expected)
    if name == "kserve":
        asyncio.run(kserve(address, given, expected))
    else:
        triton(address, given, expected)


main()
