#include "kernels/cuda/testing/fake/fake_nvml.h"

#include <cstring>
#include <utility>

#include "base/check.h"

namespace mendel::cuda {
namespace {

// The numbers are those of nvml.h.
constexpr int kNotSupported = 3, kNotFound = 6, kClockSm = 1;

NvmlDevice* Handle() { return reinterpret_cast<NvmlDevice*>(uintptr_t{16}); }

}  // namespace

FakeNvml* FakeNvml::current_ = nullptr;

FakeNvml::FakeNvml(std::string uuid) : uuid_(std::move(uuid)) {
  MENDEL_CHECK(current_ == nullptr);
  current_ = this;
  table_.Init = [] { return Next(); };
  table_.ErrorString = [](int error) {
    return error == kNotSupported ? "Not Supported" : "Not Found";
  };
  table_.SystemGetDriverVersion = [](char* version, unsigned length) {
    std::strncpy(version, "580.65.06", length - 1);
    return Next();
  };
  table_.DeviceGetHandleByUUID = [](const char* uuid, NvmlDevice** device) {
    *device = Handle();
    const int code = Next();
    return code != 0 ? code : (uuid == current_->uuid_ ? 0 : kNotFound);
  };
  table_.DeviceGetClockInfo = [](NvmlDevice*, int clock, unsigned* mhz) {
    return Answer(mhz, clock == kClockSm ? 1500 : 2619);
  };
  table_.DeviceGetMaxClockInfo = [](NvmlDevice*, int clock, unsigned* mhz) {
    return Answer(mhz, clock == kClockSm ? 1980 : 2619);
  };
  table_.DeviceGetPowerUsage = [](NvmlDevice*, unsigned* milliwatts) {
    return Answer(milliwatts, 312500);
  };
  table_.DeviceGetEnforcedPowerLimit = [](NvmlDevice*, unsigned* milliwatts) {
    return Answer(milliwatts, 700000);
  };
  table_.DeviceGetTemperature = [](NvmlDevice*, int, unsigned* celsius) {
    return Answer(celsius, 54);
  };
  table_.DeviceGetCurrentClocksThrottleReasons = [](NvmlDevice*, unsigned long long* reasons) {
    *reasons = 0x24;
    return Next();
  };
  table_.path = "made up";
}

FakeNvml::~FakeNvml() { current_ = nullptr; }

int FakeNvml::Next() { return ++current_->calls_ == current_->fail_at_ ? kNotSupported : 0; }

int FakeNvml::Answer(unsigned* to, unsigned value) {
  const int code = Next();
  if (code == 0) *to = value;
  return code;
}

void FakeNvml::FailAt(int64_t call) {
  calls_ = 0;
  fail_at_ = call;
}

}  // namespace mendel::cuda
