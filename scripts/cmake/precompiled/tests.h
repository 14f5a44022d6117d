// What the unit tests include besides.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scripts/cmake/precompiled/library.h"
