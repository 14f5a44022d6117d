#!/usr/bin/env bash
# The table of native kernels beside oneDNN's: what bench/kernels makes of measurements, by programs that make them up, and that the real
# program measures layers of every sort. usage: kernel_table_test.sh KERNEL_TIMES
set -uo pipefail
times=$(realpath "$1")
cd "$(dirname "$0")/.."
. tests/cli_expect.sh
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
table=$folder/table.md

# fake NAME SET: a program on a machine with this set, or the one it is limited to; the lines that follow are its measurements.
fake() {
  {
    echo '#!/usr/bin/env bash'
    echo "set=\${DNNL_MAX_CPU_ISA:-$2}"
    echo 'printf "machine\tcpu; a machine\t%s\n" "${set,,}"'
    cat
  } >"$folder/$1"
  chmod +x "$folder/$1"
}
cat >"$folder/lines" <<'EOS'
layer() { printf 'layer\t3x3\t%s\t1\t%s\tdefault\t1e-07\t%s\t0.01\tjit\t%s\t0.02\t2\t3\n' "$@"; }
layer 'a: wide' winograd-own:4 1.0 2.5
layer 'a: narrow' winograd-own:4 1.0 0.8
layer 'a: wide' winograd-own:2 1.0 1.04
EOS
fake measured AVX512_CORE <"$folder/lines"
expect 0 '^$' bench/kernels --program "$folder/measured" --output "$table"
expect 0 '\| winograd-own:4 \| 3x3 \| 1 of 2, mean 1.41 \| 1 of 2, mean 1.41 \| 2 of 4 \| 2.50 \| a: wide, avx512, 1 thread' cat "$table"
expect 0 'Never 1.05 times as fast: winograd-own:2 3x3 \(best 1.04\)\.$' cat "$table"
expect 0 '\| winograd-own:4 \| avx2 \| 1 \| 3x3 \| a: narrow \| 1 \(1 %\) \| 0.8 \(2 %\) \| jit \| 0.80 \| 1.50 \| default \| 1e-07 \|' cat "$table"
grep -q 'SKIP\|WRONG' "$table" && fail "nothing was skipped or wrong"

fake narrow AVX2 <"$folder/lines"
expect 0 '^$' bench/kernels --program "$folder/narrow" --output "$table"
expect 0 '^SKIP avx512: this machine, or oneDNN here, has avx2$' cat "$table"

fake wrong AVX512_CORE <<'EOS'
printf 'layer\t3x3\ta: wide\t1\twinograd-own:2\tdefault\t1e-07\t1\t0\tjit\t2\t0\t1\t2\n'
printf 'wrong\t3x3\ta: wide\t1\twinograd-own:4\tdefault\tinf\n'
exit 1
EOS
expect 1 '^$' bench/kernels --program "$folder/wrong" --output "$table"
expect 0 '^WRONG, not timed: .*avx512.*winograd-own:4.*inf' cat "$table"

fake broken AVX512_CORE <<<'echo oneDNN failed >&2; exit 1'
expect 1 'exit code 1: oneDNN failed' bench/kernels --program "$folder/broken" --output "$table"
fake idle AVX512_CORE </dev/null
expect 2 'nothing to measure' bench/kernels --program "$folder/idle" --output "$table"

# Own algorithms, own defaults with oneDNN's primitive, and chains of several layers.
row=$'[a-z]+\t[0-9.e+-]+\t[0-9.]+\t[0-9.]+\t.*(jit|brg|wino|dw).*\t[0-9.]+\t[0-9.]+\t[0-9.]+\t[0-9.]+'
measure() { "$times" --seconds 0.1 --threads 1 --filter "$1"; }
case $("$times" --set none) in
*$'\tavx'*)
  expect 0 $'layer\t3x3\tssd300: 256->256 3x3 over 10x10\t1\twinograd-own:[0-9x]+\t'"$row" measure 'ssd300: 256'
  expect 0 $'layer\tTanh\tdcgan: 1x3x64x64\t1\t[A-Za-z, ]+\t'"$row" measure Tanh
  expect 0 $'layer\texpanded depthwise 3x3 Clip\tmobilenet_v2: .*\t1\tdepthwise-own:expand\t'"$row" measure '160->960'
  ;;
*) echo "SKIP: this machine, or oneDNN here, has no kernels of its own to measure" ;;
esac
expect 105 'threads' "$times" --threads 0
exit $((failures > 0))
