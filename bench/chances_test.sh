#!/usr/bin/env bash
# Pairs of bench/chances: their names, files that depend on name and seed only, verdicts, and a run that is resumed.
# usage: chances_test.sh MENDEL
set -uo pipefail
mendel=$(realpath "$1")
cd "$(dirname "$0")/.."
. tests/cli_expect.sh
python=${MENDEL_PYTHON:-/usr/bin/python3}
"$python" -c 'import numpy' 2>/dev/null || { echo "SKIP: $python has no numpy"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
chances=("$python" bench/chances --no-check)
small='^(strided_slice-c64-n28-k3-step2-group64-relu|taps_in_padding-c512-n2-k7-group512|merged_pools-c64-n56-first2-second2-within)$'

# Names.
"${chances[@]}" --list >"$folder/names"
count=$(sort -u "$folder/names" | wc -l)
((count >= 200)) || fail "--list prints $count names, expected at least 200"
((count == $(wc -l <"$folder/names"))) || fail "--list prints a name twice"
expect 0 'partial' "${chances[@]}" --list --only '^padded_linear_convs'
expect 1 "no pair's name contains 'nothing'" "${chances[@]}" --list --only nothing
(($("${chances[@]}" --list --sample 7 | wc -l) == 7)) || fail "--sample 7 does not draw 7 pairs"
cmp -s <("${chances[@]}" --list --sample 7) <("${chances[@]}" --list --sample 7) || fail "the same seed drew another sample"

# Files.
"${chances[@]}" --write "$folder/one" --only "$small" >"$folder/paths"
(($(wc -l <"$folder/paths") == 6)) || fail "--write did not write 3 pairs"
"${chances[@]}" --write "$folder/again" --only "$small" >/dev/null
"${chances[@]}" --write "$folder/other" --only "$small" --seed 2 >/dev/null
diff -rq "$folder/one" "$folder/again" || fail "the same seed gave other models"

# Verdicts: the forms of a pair are equal, those of other weights are not.
for naive in "$folder"/one/*.naive.onnx; do
  expect 0 '^equivalent' "$mendel" verify "$naive" "${naive/.naive./.expert.}"
done
name=strided_slice-c64-n28-k3-step2-group64-relu
expect 1 '^different|^partial' "$mendel" verify "$folder/one/$name.naive.onnx" "$folder/other/$name.expert.onnx"

# A run writes a table, and the same run again measures nothing.
run=("${chances[@]}" --mendel "$mendel" --only "^$name\$" --budget 1s --rounds 2 --duration 0.02 --rows "$folder/rows" --output "$folder/chances.md")
expect 0 "\| $name \| strided_slice \|" "${run[@]}"
grep -q '^Geometric mean of gains' "$folder/chances.md" || fail "the results have no summary"
(($(wc -l <"$folder/rows") == 1)) || fail "the first run did not keep one row"
expect 0 'equivalent' "${run[@]}"
(($(wc -l <"$folder/rows") == 1)) || fail "the second run measured the row again"
printf '#!/bin/sh\n[ "$1" = --version ] && exit 0\necho "no such $1" >&2\nexit 5\n' >"$folder/broken"
chmod +x "$folder/broken"
expect 1 'failed: mendel verify: exit code 5: no such verify' "${run[@]}" --mendel "$folder/broken"
expect 1 'cannot run mendel' "${run[@]}" --mendel "$folder/absent"

((failures == 0)) && echo "chances_test: all good"
exit $((failures > 0))
