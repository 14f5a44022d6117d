#include "server/rpc/message_mutator.h"

#include <google/protobuf/descriptor.h>

#include <array>
#include <cstdint>
#include <limits>

namespace mendel::server {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr int kDeepest = 8;

template <class T>
T AnyInteger(Rng& rng) {
  constexpr std::array kEnds = {std::numeric_limits<T>::min(), std::numeric_limits<T>::max(), T{0},
                                T{1}};
  switch (rng.Below(4)) {
    case 0:
      return kEnds[rng.Below(kEnds.size())];
    case 1:
      return static_cast<T>(rng.Next());
    case 2:
      return static_cast<T>(uint64_t{1} << rng.Below(64));
    default:
      return static_cast<T>(rng.Below(20)) - T{4};
  }
}

double AnyDouble(Rng& rng) {
  using Limits = std::numeric_limits<double>;
  const std::array ends = {Limits::quiet_NaN(),
                           Limits::infinity(),
                           -Limits::infinity(),
                           Limits::max(),
                           -0.0,
                           Limits::denorm_min(),
                           1.0};
  return rng.Flip() ? ends[rng.Below(ends.size())] : rng.Normal() * 100;
}

/// Valid UTF-8 stays so mostly: a string field that is not is refused by the parser already.
std::string AnyText(const std::string& before, const std::vector<std::string>& words, Rng& rng) {
  std::string text = before;
  const size_t at = rng.Below(text.size() + 1);
  switch (rng.Below(7)) {
    case 0:
    case 1:
      return words[rng.Below(words.size())];
    case 2:
      return text.insert(at, words[rng.Below(words.size())]);
    case 3:
      return text.erase(at, 1 + rng.Below(8));
    case 4:
      return text.insert(at, 1, static_cast<char>(rng.Below(128)));
    case 5:
      if (at < text.size()) text[at] = static_cast<char>(rng.Below(256));
      return text;
    default:
      return text.substr(0, 1000) + std::string(rng.Below(300), text.empty() ? 'a' : text.back());
  }
}

/// Sets a field that is no message; adds to it where it is repeated.
void SetValue(Message& message, const FieldDescriptor& field, const std::vector<std::string>& words,
              Rng& rng) {
  const Reflection& reflection = *message.GetReflection();
  const bool more = field.is_repeated();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32: {
      const auto value = AnyInteger<int32_t>(rng);
      return more ? reflection.AddInt32(&message, &field, value)
                  : reflection.SetInt32(&message, &field, value);
    }
    case FieldDescriptor::CPPTYPE_INT64: {
      const auto value = AnyInteger<int64_t>(rng);
      return more ? reflection.AddInt64(&message, &field, value)
                  : reflection.SetInt64(&message, &field, value);
    }
    case FieldDescriptor::CPPTYPE_UINT64: {
      const auto value = AnyInteger<uint64_t>(rng);
      return more ? reflection.AddUInt64(&message, &field, value)
                  : reflection.SetUInt64(&message, &field, value);
    }
    case FieldDescriptor::CPPTYPE_DOUBLE: {
      const double value = AnyDouble(rng);
      return more ? reflection.AddDouble(&message, &field, value)
                  : reflection.SetDouble(&message, &field, value);
    }
    case FieldDescriptor::CPPTYPE_BOOL:
      return more ? reflection.AddBool(&message, &field, rng.Flip())
                  : reflection.SetBool(&message, &field, rng.Flip());
    case FieldDescriptor::CPPTYPE_ENUM: {
      const int value = rng.Flip(0.8) ? static_cast<int>(rng.Below(10)) : AnyInteger<int32_t>(rng);
      return more ? reflection.AddEnumValue(&message, &field, value)
                  : reflection.SetEnumValue(&message, &field, value);
    }
    case FieldDescriptor::CPPTYPE_STRING:
      if (more) return reflection.AddString(&message, &field, AnyText("", words, rng));
      return reflection.SetString(&message, &field,
                                  AnyText(reflection.GetString(message, &field), words, rng));
    default:
      return;  // the API has no other types
  }
}

/// A message field: made, gone into, or one more of it.
Message& Enter(Message& message, const FieldDescriptor& field, Rng& rng) {
  const Reflection& reflection = *message.GetReflection();
  if (!field.is_repeated()) return *reflection.MutableMessage(&message, &field);
  const int size = reflection.FieldSize(message, &field);
  if (size == 0 || rng.Flip(0.3)) {
    Message& added = *reflection.AddMessage(&message, &field);
    if (size > 0)
      added.CopyFrom(reflection.GetRepeatedMessage(
          message, &field, static_cast<int>(rng.Below(static_cast<uint64_t>(size)))));
    return added;
  }
  return *reflection.MutableRepeatedMessage(
      &message, &field, static_cast<int>(rng.Below(static_cast<uint64_t>(size))));
}

void Mutate(Message& message, const std::vector<std::string>& words, Rng& rng, int depth) {
  const auto& type = *message.GetDescriptor();
  if (type.field_count() == 0) return;
  const Reflection& reflection = *message.GetReflection();
  const FieldDescriptor& field =
      *type.field(static_cast<int>(rng.Below(static_cast<uint64_t>(type.field_count()))));
  const bool set = field.is_repeated() ? reflection.FieldSize(message, &field) > 0
                                       : reflection.HasField(message, &field);
  if (set && rng.Flip(0.1)) return reflection.ClearField(&message, &field);
  if (set && field.is_repeated() && rng.Flip(0.2)) return reflection.RemoveLast(&message, &field);
  if (field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE)
    return SetValue(message, field, words, rng);
  if (depth < kDeepest) Mutate(Enter(message, field, rng), words, rng, depth + 1);
}

}  // namespace

void MutateMessage(Message& message, const std::vector<std::string>& words, Rng& rng) {
  Mutate(message, words, rng, 0);
}

}  // namespace mendel::server
