// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// The program of the plugin. The strategy is in operator.ts.

import joindecider from "quorate/plugin/v1/joindecider.proto";
import plugin from "quorate/plugin/v1/plugin.proto";
import { operator, schema } from "./operator";
import { serve } from "./quorate-plugin";

void serve({
  name: "operator", version: "1.0.0", policy: "POLICY_JOIN_DECIDER", service: "quorate.plugin.v1.JoinDecider",
  files: [plugin, joindecider], configure: operator, schema,
  class: {}, // The operator's mind may change, so nothing is promised.
});
