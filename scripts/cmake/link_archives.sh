#!/bin/bash
# link_archives.sh static|shared COMMAND...: runs a link command with other forms of Debian's libraries.
#
# static: libraries that have an archive are linked from it, so that the binary needs fewer packages.
# shared: libraries whose archives are not position-independent (NTL, GMP) are linked as shared ones.
# CMake's imported targets know one form each; this is set as CXX_LINKER_LAUNCHER of the two targets that want the other.
set -euo pipefail
mode=$1
shift
command=()
archives=()
for word in "$@"; do
  case "$mode:$word" in
    static:/*/libabsl_*.so* | static:/*/libprotobuf.so* | static:/*/libcrypto.so* | static:/*/libsqlite3.so* | static:/*/libz.so* | \
      static:/*/libgrpc*.so* | static:/*/libgpr.so* | static:/*/libupb.so* | static:/*/libaddress_sorting.so* | static:/*/libssl.so* | \
      static:/*/libcares.so* | static:/*/libre2.so*)
      archive=${word%%.so*}.a
      if [[ -e $archive ]]; then archives+=("$archive"); else command+=("$word"); fi
      if [[ $word == */libprotobuf.so* && -e ${word%/*}/libz.a ]]; then archives+=("${word%/*}/libz.a"); fi
      ;;
    static:-lre2) archives+=(-l:libre2.a) ;;  # what pkg-config reports gRPC
    shared:/*/libntl.a | shared:/*/libgmp.a) command+=("${word%.a}.so") ;;
    *) command+=("$word") ;;
  esac
done
if ((${#archives[@]})); then command+=(-Wl,--start-group "${archives[@]}" -Wl,--end-group); fi
exec "${command[@]}"
