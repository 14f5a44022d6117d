// Headers that the unit tests include in addition.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scripts/cmake/precompiled/library.h"
