// The project of a request. One table says which text fields of requests are names of resources; a
// test demands that it knows every text field of every method.
#ifndef MENDEL_SERVER_RPC_REQUEST_PROJECT_H_
#define MENDEL_SERVER_RPC_REQUEST_PROJECT_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace mendel::server {

enum class TextField {
  kUnknown,  ///< the table lacks it
  kName,     ///< of a resource or of a project ("projects/{project}")
  kFree,     ///< says nothing about projects
};
TextField KindOfText(const google::protobuf::FieldDescriptor& field);

/// The project that all names in the request are of; "" where it has none. Names are brought to
/// their only spelling, so that handlers and stores know no other. InvalidArgument with a violation
/// when two projects are named, or a name begins with "projects/" and is none.
absl::StatusOr<std::string> TakeProject(google::protobuf::Message& request);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_RPC_REQUEST_PROJECT_H_
