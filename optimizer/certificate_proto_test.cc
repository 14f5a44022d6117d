#include "optimizer/certificate_proto.h"

#include <gtest/gtest.h>

#include <limits>

namespace mendel {
namespace {

Certificate Sample() {
  Certificate certificate;
  certificate.verifier_version = 3;
  certificate.original_hash = "aa";
  certificate.plan_hash = "bb";
  certificate.weights = WeightMode::kExact;
  certificate.draws = {{1009, {1, 2}}, {~uint64_t{0}, {3, ~uint64_t{0}}}};
  certificate.degree = 12;
  certificate.log2_norm = 34.5;
  certificate.oracle_operands = 6;
  certificate.elements = 7;
  certificate.segments = 8;
  certificate.shared_nodes = 9;
  certificate.rounds = 2;
  certificate.bound_log2 = -81.25;
  return certificate;
}

TEST(CertificateProto, RoundTripsEveryField) {
  const Certificate sample = Sample();
  const auto back = ParseCertificate(SerializeCertificate(sample));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->verifier_version, sample.verifier_version);
  EXPECT_EQ(back->original_hash, sample.original_hash);
  EXPECT_EQ(back->plan_hash, sample.plan_hash);
  EXPECT_EQ(back->weights, sample.weights);
  EXPECT_EQ(back->draws, sample.draws);
  EXPECT_EQ(back->degree, sample.degree);
  EXPECT_EQ(back->log2_norm, sample.log2_norm);
  EXPECT_EQ(back->oracle_operands, sample.oracle_operands);
  EXPECT_EQ(back->elements, sample.elements);
  EXPECT_EQ(back->segments, sample.segments);
  EXPECT_EQ(back->shared_nodes, sample.shared_nodes);
  EXPECT_EQ(back->rounds, sample.rounds);
  EXPECT_EQ(back->bound_log2, sample.bound_log2);
}

TEST(CertificateProto, RefusesWhatIsOutOfRange) {
  const auto refused = [](void (*damage)(plan::CertificateProto&)) {
    plan::CertificateProto proto = ToProto(Sample());
    damage(proto);
    return FromProto(proto).status().code() == absl::StatusCode::kInvalidArgument;
  };
  EXPECT_TRUE(
      refused([](plan::CertificateProto& p) { p.set_weights(plan::WEIGHTS_MODE_UNSPECIFIED); }));
  EXPECT_TRUE(refused([](plan::CertificateProto& p) {
    p.set_bound_log2(std::numeric_limits<double>::quiet_NaN());
  }));
  EXPECT_TRUE(refused([](plan::CertificateProto& p) { p.set_elements(-1); }));
  EXPECT_TRUE(refused([](plan::CertificateProto& p) { p.set_rounds(0); }));
  EXPECT_FALSE(ParseCertificate("\xff\xff").ok());
}

}  // namespace
}  // namespace mendel
