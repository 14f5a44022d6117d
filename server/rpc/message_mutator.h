// Mutations of protobuf messages by their fields, for the fuzzer of the requests: what comes out is
// a message again, and mostly one that is still nearly valid.
#ifndef MENDEL_SERVER_RPC_MESSAGE_MUTATOR_H_
#define MENDEL_SERVER_RPC_MESSAGE_MUTATOR_H_

#include <google/protobuf/message.h>

#include <string>
#include <vector>

#include "base/random.h"

namespace mendel::server {

/// Changes one field of the message or of a message within it: sets, clears, repeats, removes or
/// edits it. Texts come from `words`, from each other, or are edited; numbers are often the ends of
/// their range. Nested at most 8 deep.
void MutateMessage(google::protobuf::Message& message, const std::vector<std::string>& words,
                   Rng& rng);

/// Calls `change` for each string and bytes field, at any depth.
template <class Change>
void ForEachText(google::protobuf::Message& message, const Change& change) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const auto* field : fields) {
    const bool text = field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_STRING;
    if (!text && field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) continue;
    for (int i = 0; i < (field->is_repeated() ? reflection.FieldSize(message, field) : 1); ++i) {
      if (!text) {
        ForEachText(field->is_repeated() ? *reflection.MutableRepeatedMessage(&message, field, i)
                                         : *reflection.MutableMessage(&message, field),
                    change);
      } else if (field->is_repeated()) {
        reflection.SetRepeatedString(&message, field, i,
                                     change(reflection.GetRepeatedString(message, field, i)));
      } else {
        reflection.SetString(&message, field, change(reflection.GetString(message, field)));
      }
    }
  }
}

}  // namespace mendel::server

#endif  // MENDEL_SERVER_RPC_MESSAGE_MUTATOR_H_
