#!/bin/bash
# cuda_cli_test.sh MENDEL MAKE_CONV_NET FAKES: the commands that need a GPU, on the fakes of CUDA's libraries in folder FAKES
# (kernels/cuda/testing/fake/libraries/installation.h): a measured search, plans that run, are measured and refused, and a failing device.
set -u
mendel=$1
make_conv_net=$2
fakes=$3
. "$(dirname "$0")/cli_expect.sh"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1

# The loader finds the driver and NVML, the program's own search the other libraries.
export LD_LIBRARY_PATH=$fakes${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} MENDEL_CUDA_PATH=$fakes
export XDG_CACHE_HOME=$folder/caches MENDEL_LOCK_DIR=$folder MENDEL_CUDA_ALGORITHMS=1
unset MENDEL_CUDA_WORKSPACE_MIB
"$make_conv_net" net.onnx && "$make_conv_net" other.onnx 2 || exit 1
optimize=("$mendel" optimize net.onnx --device cuda --threads 1 --max-candidates 1)
kernels=$folder/caches/mendel/kernels

# The device that is here.
expect 0 '^backend cuda: cuda:emulated device:sm_90:driver 13000:nvrtc 13\.99:cuDNN 9\.19\.0.*:cublaslt 13\.1\.0' "$mendel" doctor
expect 0 "^cuda: NVRTC 13.99 at $fakes/libnvrtc.so.13" "$mendel" doctor
expect 0 "^cuda: cuDNN 9.19.0 at $fakes/libcudnn.so.9" "$mendel" doctor
expect 0 '^cuda: driver for CUDA 13.0 at libcuda.so.1' "$mendel" doctor
expect 0 '^cuda: NVML of driver 580.65.06' "$mendel" doctor
expect 0 '^cuda: device: emulated device, sm_90, 4 multiprocessors at 1980 MHz, 1.0 GiB' "$mendel" doctor
expect 0 'cuDNN: .*version 90100, older than 90800; convolutions run' env MENDEL_FAKE_CUDNN_VERSION=90100 "$mendel" doctor
expect 0 'NVRTC: .* is version 11.3, older than 11.4; no kernel' env MENDEL_FAKE_NVRTC_VERSION=1103 "$mendel" doctor

# --cuda-path comes before the environment, for what a command opens.
mkdir here && for library in "$fakes"/lib*; do ln -s "$(realpath "$library")" "here/${library##*/}"; done
expect 0 "^cuda: NVRTC 13.99 at here/libnvrtc.so.13" "$mendel" doctor --cuda-path here
expect 2 'cuda-path.*nowhere' "$mendel" doctor --cuda-path nowhere
expect 2 'cuda-path.*nowhere' "${optimize[@]}" --cuda-path nowhere -o none.plan

# A measured search, and commands that read its plan.
expect 0 '^wrote +gpu.plan' "${optimize[@]}" --cache cache.sqlite --budget 30s -o gpu.plan
expect 0 '^times: measured' "$mendel" inspect gpu.plan
expect 0 '^machine: cuda:emulated device:sm_90' "$mendel" inspect gpu.plan
expect 0 '^device before: 1500 of 1980 MHz' "$mendel" inspect gpu.plan
expect 0 'on cuda:emulated device:sm_90' "$mendel" explain gpu.plan
expect 0 '^ +[0-9.]+ ms  the_MatMul' "$mendel" explain gpu.plan --steps --cuda-path here
expect 0 '; launches (in the order of the plan|depth first|up to [0-9]+ side by side)\]' "$mendel" explain gpu.plan --steps --cuda-path here
expect 0 '^equivalent' "$mendel" verify gpu.plan --model net.onnx
expect 0 '^equivalent.*fresh' "$mendel" verify gpu.plan --model net.onnx --fresh
expect 0 '^plan +median .*runs' "$mendel" bench gpu.plan --duration 50ms
expect 0 '^device after +1500 of 1980 MHz.* throttled by the power limit' "$mendel" bench gpu.plan --duration 50ms
expect 0 '"speedup": ' "$mendel" bench gpu.plan --duration 50ms --baseline --json
expect 0 'wrote +rebound.plan' "$mendel" rebind gpu.plan --model other.onnx -o rebound.plan
# With the same cache, nothing is measured anew, and no kernel is compiled.
before=$(ls "$kernels" | sort | sha256sum)
expect 0 '^wrote' "${optimize[@]}" --cache cache.sqlite --budget 30s --error-on-cache-miss -o again.plan
[ "$(ls "$kernels" | sort | sha256sum)" = "$before" ] || fail "kernels were compiled again"

# The numbers are those of the definitions. far A B: the largest difference of two .npy files of f32.
far() { paste <(tail -c 40 "$1" | od -An -v -w4 -tf4) <(tail -c 40 "$2" | od -An -v -w4 -tf4) | awk '{d = $1 - $2; if (d < 0) d = -d; if (d > m) m = d; if ($2 != 0) s = 1} END {print NR == 10 && s ? m : 1}'; }
expect 0 '^wrote' "$mendel" optimize net.onnx --device reference --threads 1 --max-candidates 0 --budget 1s --cache cache.sqlite -o host.plan
expect 0 '^y +f32\[1,10\]' "$mendel" run host.plan --random-inputs 3 --output-dir host
expect 0 '^y +f32\[1,10\]' "$mendel" run gpu.plan --random-inputs 3 --output-dir gpu
awk "BEGIN {exit !($(far gpu/y.npy host/y.npy) < 1e-5)}" || fail "the GPU's plan differs by $(far gpu/y.npy host/y.npy)"

# A plan of another version or architecture is refused with both named; --retune replaces its algorithms.
expect 2 'tuned for .*cuDNN 9.19.0.*this machine is .*cuDNN 9.18.0' env MENDEL_FAKE_CUDNN_VERSION=91800 "$mendel" run gpu.plan --random-inputs 3 --output-dir out
expect 2 'tuned for .*cuDNN 9.19.0.*this machine is .*cuDNN 9.18.0' env MENDEL_FAKE_CUDNN_VERSION=91800 "$mendel" bench gpu.plan --duration 50ms
expect 2 'tuned for .*sm_90.*this machine is .*sm_80' env MENDEL_FAKE_ARCHITECTURE=80 "$mendel" run gpu.plan --random-inputs 3 --output-dir out
expect 2 'plan is for cuda \(sm_90\), .*does not know sm_121' env MENDEL_FAKE_ARCHITECTURE=121 "$mendel" run gpu.plan --random-inputs 3 --output-dir out
[ -e out ] && fail "a refused run wrote outputs"
expect 0 '^y ' env MENDEL_FAKE_ARCHITECTURE=80 "$mendel" run gpu.plan --retune --random-inputs 3 --output-dir retuned
awk "BEGIN {exit !($(far retuned/y.npy host/y.npy) < 1e-5)}" || fail "the retuned plan differs by $(far retuned/y.npy host/y.npy)"
expect 0 '^plan +median' env MENDEL_FAKE_CUDNN_VERSION=91800 "$mendel" bench gpu.plan --retune --duration 50ms

# A failure while the user has a plan: it is named, and the plan's bytes stay.
cp gpu.plan kept.plan
# refused CODE WORDS SETTING: optimizing under this setting of the fakes.
refused() {
  expect "$1" "$2" env "$3" "${optimize[@]}" --cache "fresh$((++fresh)).sqlite" --budget 60s -o kept.plan
  cmp -s gpu.plan kept.plan || { fail "$3 changed the user's plan" && cp gpu.plan kept.plan; }
}
fresh=0
refused 2 'cuInit: .*\(100\) - without a GPU, .*--offline' MENDEL_FAKE_FAILURE=Init:1:100
refused 2 'driver is too old: it supports CUDA 11.2, and 11.4 is needed' MENDEL_FAKE_DRIVER_VERSION=11020
refused 2 'is version 11.3, older than 11.4' MENDEL_FAKE_NVRTC_VERSION=1103
refused 2 'NVRTC 13.99 does not know sm_121 of emulated device' MENDEL_FAKE_ARCHITECTURE=121
refused 2 'compiled for another architecture than this device' MENDEL_FAKE_FAILURE=ModuleLoadData:1:209
refused 5 'bytes of device memory: cuMemAlloc: out of device memory' MENDEL_FAKE_MEMORY=1000
refused 5 'cuStreamSynchronize: uncorrectable ECC error .* must be started again' MENDEL_FAKE_FAILURE=StreamSynchronize:1:214
refused 5 'uncorrectable ECC error .* must be started again' MENDEL_FAKE_FAILURE=StreamSynchronize:30:214
refused 4 'an illegal memory access was encountered \(700\).* must be started again' MENDEL_FAKE_FAILURE=GraphLaunch:9:700
expect 5 '[0-9]+ bytes of device memory: cuMemAlloc: out of device memory' env MENDEL_FAKE_MEMORY=1000 "$mendel" run gpu.plan --random-inputs 3 --output-dir out
expect 5 'uncorrectable ECC error' env MENDEL_FAKE_FAILURE=GraphLaunch:1:214 "$mendel" run gpu.plan --random-inputs 3 --output-dir out
expect 5 'out of device memory' env MENDEL_FAKE_MEMORY=1000 "$mendel" bench gpu.plan --duration 50ms
[ -e out ] && fail "a failed run wrote outputs"

# Memory is too short for the one order of launches of this plan (other orders that do not fit are left out, and reported).
expect 5 'bytes of device memory: cuMemAlloc: out of device memory' env MENDEL_FAKE_FAILURE=MemAlloc:1:2 "$mendel" run gpu.plan --random-inputs 3 --output-dir out
[ -e out ] && fail "a run without memory wrote outputs"

# One process measures at a time: the others print that they wait, and go on.
(
  flock 9
  sleep 2
) 9>"$folder/mendel-GPU-00112233-4455-6677-8899-0a1b2c3d4e5f.lock" &
sleep 0.2
expect 0 'waits up to 600 s for another process that measures on GPU-0011' "$mendel" bench gpu.plan --duration 50ms
wait

((failures == 0)) && echo "cuda_cli_test: all good"
exit $((failures > 0))
