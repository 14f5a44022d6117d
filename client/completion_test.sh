#!/bin/bash
# completion_test.sh MENDEL: completion works in bash; zsh, fish and roff take what is written for them (where they are installed).
set -u
mendel=$1
failures=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "FAIL: $1"; failures=$((failures + 1)); }
for kind in bash zsh fish man; do "$mendel" completion $kind >"$folder/$kind" || fail "completion $kind"; done

# offered WORD...: what bash offers for the last word.
offered() {
  bash -c 'source "$1"; shift; COMP_WORDS=(mendel "$@"); COMP_CWORD=$#; _mendel; echo "${COMPREPLY[*]}"' _ "$folder/bash" "$@"
}
[ "$(offered opt)" = optimize ] || fail "bash: commands: $(offered opt)"
[[ " $(offered submit --) " == *" --priority "* ]] || fail "bash: options: $(offered submit --)"
[ "$(offered optimize --search '')" = "beam egraph" ] || fail "bash: choices: $(offered optimize --search '')"
[ "$(offered verify --weights s)" = symbolic ] || fail "bash: choices of a map: $(offered verify --weights s)"
[ -z "$(offered submit --token-file '')" ] || fail "bash: file names are bash's own: $(offered submit --token-file '')"
[ "$(offered plans g)" = get ] || fail "bash: actions: $(offered plans g)"

for command in $("$mendel" --help | sed -n '/^Subcommands:/,/^Exit/s/^  \([a-z]\+\) .*/\1/p'); do
  for kind in bash zsh fish man; do grep -qw -- "$command" "$folder/$kind" || fail "$kind does not know $command"; done
done
grep -q '^\.SH EXIT STATUS' "$folder/man" || fail "man: no exit status"
grep -q 'MENDEL_SERVER' "$folder/man" || fail "man: no environment"
if command -v zsh >/dev/null; then zsh -n "$folder/zsh" || fail "zsh: syntax"; else echo "SKIP: zsh"; fi
if command -v fish >/dev/null; then
  fish -n "$folder/fish" || fail "fish: syntax"
  [[ "$(fish -c "source $folder/fish; complete -C 'mendel optimize --search '" 2>/dev/null)" == *egraph* ]] || fail "fish: choices"
else
  echo "SKIP: fish"
fi
if command -v groff >/dev/null; then
  warnings=$(groff -man -Tutf8 -ww -z "$folder/man" 2>&1)
  [ -z "$warnings" ] || fail "man: $warnings"
else
  echo "SKIP: groff"
fi
[ $failures -eq 0 ] && echo "completion and manual page: good"
exit $((failures > 0))
