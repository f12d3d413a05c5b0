// SPDX-License-Identifier: Apache-2.0
#include "tools/audit_line.hpp"

#include <gtest/gtest.h>

#include "base/places.hpp"

namespace espalier::tools {
namespace {

using offload::AuditRecord;
using offload::Right;

TEST(AuditLine, SaysWhoWasRefusedWhatAndWhy) {
  AuditRecord record;
  record.refusal = true;
  record.act = "put";
  record.name = "shop";
  record.role = Right::read;
  record.address = "roce 192.0.2.1:4791";
  record.object = "orders/1";
  record.outcome = {Code::not_permitted, 0, 2};
  EXPECT_EQ(audit_line(record),
            "audit act=put outcome=not_permitted reason=takes_write name=shop role=read "
            "from=\"roce 192.0.2.1:4791\" object=\"orders/1\"");
  record.outcome.detail = 0;
  record.left_out = 17;
  EXPECT_EQ(audit_line(record),
            "audit act=put outcome=not_permitted reason=other_names name=shop role=read "
            "from=\"roce 192.0.2.1:4791\" object=\"orders/1\" left_out=17");
}

TEST(AuditLine, SaysWhatAnAdministratorDidAndWhatCameOfIt) {
  AuditRecord record;
  record.act = "object_drop";
  record.name = "user 1000";
  record.role = Right::admin;
  record.address = "unix process 12 of user 1000";
  record.object = "m";
  EXPECT_EQ(audit_line(record),
            "audit act=object_drop outcome=done name=\"user 1000\" role=admin "
            "from=\"unix process 12 of user 1000\" object=m");
  record.to = "n m";
  EXPECT_TRUE(audit_line(record).ends_with(" object=m to=\"n m\""));
  record.outcome = {Code::wrong_kind, 0, 3};
  EXPECT_EQ(audit_line(record).find("outcome=wrong_kind detail=3"), 22u);
}

TEST(AuditLine, SaysOfWhatThereAreNoMorePlaces) {
  AuditRecord record;
  record.act = "connect";
  record.address = "unix";
  record.outcome = base::full_error(base::Places::user_hellos, 256);
  EXPECT_EQ(audit_line(record),
            "audit act=connect outcome=too_many_participants reason=user_hellos detail=256 "
            "from=unix");
  record.outcome = base::full_error(base::Places::descriptors);
  EXPECT_EQ(audit_line(record),
            "audit act=connect outcome=too_many_participants reason=descriptors from=unix");
}

TEST(AuditLine, NamesTheDeviceThatRelays) {
  AuditRecord record;
  record.act = "put";
  record.name = "shop";
  record.role = Right::write;
  record.via = "device1";
  record.address = "roce 192.0.2.9:4791";
  record.outcome = {Code::not_permitted, 0, 0};
  EXPECT_EQ(audit_line(record),
            "audit act=put outcome=not_permitted reason=other_names name=shop role=write "
            "via=device1 from=\"roce 192.0.2.9:4791\"");
}

TEST(AuditLine, IsOneLineWhateverANameHas) {
  AuditRecord record;
  record.act = "authenticate";
  record.address = "ofi [::1]:5";
  record.outcome = {Code::not_permitted, 0, 5};
  record.object = "a\nb\"c\\d\x80 outcome=done";
  EXPECT_EQ(audit_line(record),
            "audit act=authenticate outcome=not_permitted reason=wrong_proof "
            "from=\"ofi [::1]:5\" object=\"a\\x0ab\\\"c\\\\d\\x80 outcome=done\"");
}

TEST(AuditLine, TellsWhatWasLeftOutAlone) {
  AuditRecord record;
  record.left_out = 1000;
  EXPECT_EQ(audit_line(record), "audit left_out=1000");
}

}  // namespace
}  // namespace espalier::tools
