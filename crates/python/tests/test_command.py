"""The command, the exceptions, the process."""

import os
import subprocess
import sys

import numpy as np
import pytest
from conftest import command, waves

import lamo


def test_the_command_comes_with_the_package():
    done = command("--version")
    assert (done.returncode, done.stdout.strip()) == (0, f"lamo {lamo.__version__}")
    assert command("train").returncode == 2
    failed = command("predict", "nowhere", "--input", "x.npy")
    assert failed.returncode == 1 and failed.stderr.startswith("lamo: nowhere")


def test_an_exception_says_the_sentence_of_the_command(run):
    np.save("flat.npy", np.ones(7, dtype=np.float32))
    told = command("predict", run.path, "--input", "flat.npy").stderr.strip()
    with pytest.raises(lamo.InputError) as caught:
        run.predict(np.ones(7, dtype=np.float32))
    assert told == "lamo: " + str(caught.value).replace("inputs:", "flat.npy:", 1)


@pytest.mark.parametrize("name, base", [
    ("InputError", ValueError), ("MissingError", FileNotFoundError), ("DivergedError", ArithmeticError),
    ("OutOfSpaceError", OSError), ("InternalError", RuntimeError), ("ConflictError", lamo.Error),
    ("DeviceError", lamo.Error), ("FailedError", lamo.Error),
])
def test_every_kind_of_error_is_an_exception_of_lamo_and_of_python(name, base):
    assert issubclass(getattr(lamo, name), (lamo.Error,)) and issubclass(getattr(lamo, name), base)


def test_ctrl_c_is_no_error():
    assert issubclass(lamo.Interrupted, KeyboardInterrupt) and not issubclass(lamo.Interrupted, Exception)


def test_a_training_that_breaks_is_diverged(data):
    with pytest.raises(lamo.DivergedError):
        lamo.train(data, epochs=3, out="broken", train__rate=1e30, train__clip=0, model__settings__width=16)


def test_a_gpu_that_is_not_there_is_a_device_error(data):
    if os.path.exists("/dev/nvidia0"):
        pytest.skip("this machine has a GPU")
    with pytest.raises(lamo.DeviceError):
        lamo.train(data, epochs=1, device="cuda", out="nowhere")
    assert not os.path.exists("nowhere")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_is_told_to_spawn(run):
    run.predict(waves(1, 0.2))
    script = "\n".join([
        "import os, sys, warnings",
        "warnings.simplefilter('ignore')",
        "import numpy as np, lamo",
        f"run = lamo.load({str(run.path)!r})",
        "run.predict(np.ones((8, 6), dtype=np.float32))",
        "child = os.fork()",
        "if child == 0:",
        "    try:",
        "        run.predict(np.ones((8, 6), dtype=np.float32))",
        "    except RuntimeError as error:",
        "        os._exit(7 if 'spawn' in str(error) else 1)",
        "    os._exit(1)",
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))",
    ])
    assert subprocess.run([sys.executable, "-c", script], timeout=60).returncode == 7


def test_a_terminal_sees_one_line_and_a_script_sees_nothing(data, capfd):
    lamo.train(data, epochs=1, out="quiet", model__settings__width=16)
    assert capfd.readouterr().err == ""
    lamo.train(data, epochs=1, out="loud", progress=True, model__settings__width=16)
    told = capfd.readouterr().err
    assert "training lamo" in told and "\n" not in told
