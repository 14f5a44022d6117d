#include "optimizer/certificate_proto.h"

#include <google/protobuf/stubs/logging.h>

#include <cmath>

#include "base/status.h"

namespace mendel {
namespace {

constexpr int kMaxDraws = 4096;

}  // namespace

plan::WeightsMode ToProto(WeightMode mode) {
  return mode == WeightMode::kExact ? plan::WEIGHTS_MODE_EXACT : plan::WEIGHTS_MODE_SYMBOLIC;
}

absl::StatusOr<WeightMode> FromProto(plan::WeightsMode mode) {
  if (mode == plan::WEIGHTS_MODE_EXACT) return WeightMode::kExact;
  if (mode == plan::WEIGHTS_MODE_SYMBOLIC) return WeightMode::kSymbolic;
  return InvalidInput("the certificate does not say what weights are to it");
}

plan::CertificateProto ToProto(const Certificate& certificate) {
  plan::CertificateProto proto;
  // judge_version is the stored name of the verifier's version (plan.proto).
  proto.set_judge_version(certificate.verifier_version);
  proto.set_original_hash(certificate.original_hash);
  proto.set_plan_hash(certificate.plan_hash);
  proto.set_weights(ToProto(certificate.weights));
  for (const Draw& draw : certificate.draws) {
    plan::DrawProto& drawn = *proto.add_draws();
    drawn.set_prime(draw.prime);
    drawn.set_key_first(draw.key[0]);
    drawn.set_key_second(draw.key[1]);
  }
  proto.set_degree(certificate.degree);
  proto.set_log2_norm(certificate.log2_norm);
  proto.set_oracle_operands(certificate.oracle_operands);
  proto.set_elements(certificate.elements);
  proto.set_segments(certificate.segments);
  proto.set_shared_nodes(certificate.shared_nodes);
  proto.set_rounds(certificate.rounds);
  proto.set_bound_log2(certificate.bound_log2);
  for (const std::string& axiom : certificate.axioms) proto.add_axioms(axiom);
  return proto;
}

absl::StatusOr<Certificate> FromProto(const plan::CertificateProto& proto) {
  const bool finite = std::isfinite(proto.degree()) && std::isfinite(proto.log2_norm()) &&
                      std::isfinite(proto.bound_log2()) && std::isfinite(proto.oracle_operands());
  const bool counts = proto.elements() >= 0 && proto.segments() >= 0 && proto.shared_nodes() >= 0 &&
                      proto.rounds() >= 1;
  if (!finite || !counts || proto.draws_size() > kMaxDraws)
    return InvalidInput("damaged certificate: a number is out of range");
  Certificate certificate;
  // judge_version is the stored name of the verifier's version (plan.proto).
  certificate.verifier_version = proto.judge_version();
  certificate.original_hash = proto.original_hash();
  certificate.plan_hash = proto.plan_hash();
  MENDEL_ASSIGN_OR_RETURN(certificate.weights, FromProto(proto.weights()));
  for (const plan::DrawProto& drawn : proto.draws()) {
    certificate.draws.push_back({drawn.prime(), {drawn.key_first(), drawn.key_second()}});
  }
  certificate.degree = proto.degree();
  certificate.log2_norm = proto.log2_norm();
  certificate.oracle_operands = proto.oracle_operands();
  certificate.elements = proto.elements();
  certificate.segments = proto.segments();
  certificate.shared_nodes = proto.shared_nodes();
  certificate.rounds = proto.rounds();
  certificate.bound_log2 = proto.bound_log2();
  certificate.axioms.assign(proto.axioms().begin(), proto.axioms().end());
  return certificate;
}

std::string SerializeCertificate(const Certificate& certificate) {
  return ToProto(certificate).SerializeAsString();
}

absl::StatusOr<Certificate> ParseCertificate(const std::string& bytes) {
  plan::CertificateProto proto;
  const google::protobuf::LogSilencer silencer;  // of malformed strings
  if (!proto.ParseFromString(bytes))
    return InvalidInput("damaged certificate: it cannot be decoded");
  return FromProto(proto);
}

}  // namespace mendel
