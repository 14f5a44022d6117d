# Sourced by the tests that drive `mendel` from outside: counts failures.

failures=0

fail() {
  printf 'FAIL: %s\n' "$*"
  failures=$((failures + 1))
}

# expect CODE WORDS COMMAND...: the exit code, and an extended regular expression that the output (both streams) must match.
expect() {
  local code=$1 words=$2 output got
  shift 2
  output=$("$@" 2>&1 </dev/null)
  got=$?
  if ((got != code)) || ! grep -Eq -- "$words" <<<"$output"; then
    fail "$*
  exit code $got, wanted $code; output, wanted /$words/:
$output"
  fi
}
