# Install tree and packages: bin/mendel, lib/libmendel.so*, include/*.h, and the shared libraries that a bare Debian 12
# lacks, in lib/ beside ours (found by the relative run paths of mendel and libmendel.so).
include(GNUInstallDirs)
set(MENDEL_LIB_DIR lib)  # not lib/<triplet>: the run path is $ORIGIN/../lib

install(TARGETS mendel RUNTIME DESTINATION bin)
install(TARGETS mendel_shared LIBRARY DESTINATION ${MENDEL_LIB_DIR})
install(FILES ${CMAKE_SOURCE_DIR}/runtime/mendel.h ${CMAKE_SOURCE_DIR}/client/c_api/mendel_optimizer.h DESTINATION include)
install(FILES ${CMAKE_SOURCE_DIR}/examples/run_plan.c DESTINATION share/doc/mendel/examples)

# Libraries of every Debian 12 are left out (apt itself needs libc6, libgcc-s1, libstdc++6).
set(MENDEL_SYSTEM_LIBRARIES "ld-linux.*" "libc[.]so.*" "libm[.]so.*" "libdl[.]so.*" "libpthread[.]so.*" "librt[.]so.*"
    "libgcc_s[.]so.*" "libstdc[+][+][.]so.*")
install(CODE "set(system_libraries \"${MENDEL_SYSTEM_LIBRARIES}\")")
install(CODE "set(files_mendel \"$<TARGET_FILE:mendel>\")\nset(files_shared \"$<TARGET_FILE:mendel_shared>\")")
install(CODE "set(library_folder \"${MENDEL_LIB_DIR}\")")
install(CODE [[
  file(GET_RUNTIME_DEPENDENCIES
    EXECUTABLES ${files_mendel} LIBRARIES ${files_shared}
    RESOLVED_DEPENDENCIES_VAR resolved UNRESOLVED_DEPENDENCIES_VAR unresolved
    PRE_EXCLUDE_REGEXES ${system_libraries} POST_EXCLUDE_REGEXES "libmendel[.]so.*")
  if(unresolved)
    message(FATAL_ERROR "libraries not found: ${unresolved}")
  endif()
  foreach(library IN LISTS resolved)
    file(INSTALL ${library} DESTINATION ${CMAKE_INSTALL_PREFIX}/${library_folder} FOLLOW_SYMLINK_CHAIN)
  endforeach()
]])

# Component gpu_check: the programs of scripts/gpu-check, for scripts/gpu_archive, with every library that they need.
if(TARGET cuda_gpu_test)
  set(files_gpu "")
  foreach(program mendel cuda_gpu_test layer_mutants model_parts)
    if(NOT program STREQUAL "mendel")
      # libdnnl, which has no run path of its own, inherits this one.
      target_link_options(${program} PRIVATE -Wl,--disable-new-dtags)
      set_target_properties(${program} PROPERTIES INSTALL_RPATH "$ORIGIN/../${MENDEL_LIB_DIR}")
    endif()
    install(TARGETS ${program} RUNTIME DESTINATION bin COMPONENT gpu_check EXCLUDE_FROM_ALL)
    list(APPEND files_gpu $<TARGET_FILE:${program}>)
  endforeach()
  install(TARGETS mendel_shared LIBRARY DESTINATION ${MENDEL_LIB_DIR} COMPONENT gpu_check EXCLUDE_FROM_ALL)
  install(CODE "set(system_libraries \"${MENDEL_SYSTEM_LIBRARIES}\")\nset(files_gpu \"${files_gpu}\")\nset(library_folder \"${MENDEL_LIB_DIR}\")"
    COMPONENT gpu_check EXCLUDE_FROM_ALL)
  install(CODE [[
    file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${files_gpu} RESOLVED_DEPENDENCIES_VAR resolved UNRESOLVED_DEPENDENCIES_VAR unresolved
      PRE_EXCLUDE_REGEXES ${system_libraries})
    if(unresolved)
      message(FATAL_ERROR "libraries not found: ${unresolved}")
    endif()
    foreach(library IN LISTS resolved)
      file(INSTALL ${library} DESTINATION ${CMAKE_INSTALL_PREFIX}/${library_folder} FOLLOW_SYMLINK_CHAIN)
    endforeach()
  ]] COMPONENT gpu_check EXCLUDE_FROM_ALL)
endif()

set(CPACK_GENERATOR TGZ DEB)
set(CPACK_PACKAGE_NAME mendel)
set(CPACK_PACKAGE_VENDOR Mendel)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Optimizer of ONNX models with mutants that it proves and corrects")
set(CPACK_PACKAGE_CONTACT "Mendel maintainers <maintainers@mendel.invalid>")
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /opt/mendel)
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_SOURCE_DIR}/scripts/cmake/CPackOptions.cmake)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= 2.36), libgcc-s1, libstdc++6")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
if(NOT EXISTS ${CPACK_RESOURCE_FILE_LICENSE})
  unset(CPACK_RESOURCE_FILE_LICENSE)
endif()
include(CPack)
