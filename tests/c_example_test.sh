#!/bin/bash
# c_example_test.sh MENDEL RUN_PLAN MAKE_SMALL_PLAN LIBMENDEL: the example in C runs a plan through libmendel.so, which exports
# nothing but the C interface.
set -eu
mendel=$1 run_plan=$2 make_small_plan=$3 library=$4
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
others=$(nm -D --defined-only "$library" | awk '{print $3}' | grep -v '^mendel_' || true)
[[ -z $others ]] || { echo "libmendel.so also exports: $others"; exit 1; }
backend=cpu
"$mendel" doctor | grep -q '^backend cpu: ' || backend=reference
"$mendel" doctor | grep -q "^backend $backend: " || { echo "SKIP: no backend"; exit 77; }
"$make_small_plan" $backend "$folder/small.plan"
"$run_plan" "$folder/small.plan" | tee "$folder/out"
grep -q '^input x \[2,8\] 64 bytes$' "$folder/out"
grep -q '^y: 0 0 0 0$' "$folder/out"
! "$run_plan" "$folder/none.plan" 2>"$folder/error"
grep -q none.plan "$folder/error"
