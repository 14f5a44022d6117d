# Read once a generator: a tarball unpacks anywhere (NAME/bin/mendel), the Debian package installs into /opt/mendel.
if(CPACK_GENERATOR STREQUAL "TGZ")
  set(CPACK_PACKAGING_INSTALL_PREFIX "/")
endif()
