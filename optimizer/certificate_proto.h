// The verifier's certificate as plans store it.
#ifndef MENDEL_OPTIMIZER_CERTIFICATE_PROTO_H_
#define MENDEL_OPTIMIZER_CERTIFICATE_PROTO_H_

#include <string>

#include "absl/status/statusor.h"
#include "mendel/plan.pb.h"
#include "verifier/verifier.h"

namespace mendel {

plan::WeightsMode ToProto(WeightMode mode);
/// InvalidArgument for an unspecified mode.
absl::StatusOr<WeightMode> FromProto(plan::WeightsMode mode);

plan::CertificateProto ToProto(const Certificate& certificate);
/// InvalidArgument when a field lies outside its domain. What the certificate claims is not checked
/// (Replay does that).
absl::StatusOr<Certificate> FromProto(const plan::CertificateProto& proto);

/// Plan::certificate_bytes and back; InvalidArgument when the bytes are no certificate.
std::string SerializeCertificate(const Certificate& certificate);
absl::StatusOr<Certificate> ParseCertificate(const std::string& bytes);

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_CERTIFICATE_PROTO_H_
