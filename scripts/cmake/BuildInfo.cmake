# cmake -DSOURCE=... -DTARGET=... -DMENDEL_VERSION=... -DMENDEL_ONEDNN=... -DMENDEL_NTL=... -P BuildInfo.cmake
# Writes TARGET from client/build_info.h.in with the checkout's commit. Runs at every build, so that the commit is right.
execute_process(COMMAND git -C ${SOURCE} rev-parse --short=12 HEAD
                OUTPUT_VARIABLE MENDEL_COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed OR NOT MENDEL_COMMIT)
  set(MENDEL_COMMIT unknown)
else()
  execute_process(COMMAND git -C ${SOURCE} diff --quiet HEAD ERROR_QUIET RESULT_VARIABLE dirty)
  if(dirty)
    string(APPEND MENDEL_COMMIT -dirty)
  endif()
endif()
configure_file(${SOURCE}/client/build_info.h.in ${TARGET} @ONLY)
