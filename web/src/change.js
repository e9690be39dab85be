// SPDX-License-Identifier: BSD-3-Clause
// change: knobs of a tenant are set, and set back.

import { call, get, keyPath } from "./api.js";
import { toast } from "./dom.js";

/** The value that a key was set to since the policy was applied, or null. */
async function override(key) {
  const policy = await get("/v1/policy");

  return policy.overrides.find((o) => o.key === key)?.value ?? null;
}

const write = (key, value) =>
  value === null ? call("DELETE", `/v1/set/${keyPath(key)}`) : call("PUT", `/v1/set/${keyPath(key)}`, value);

/** Set a knob, and offer to set it back. value null: as in the policy. Throws the gateway's refusal. */
export async function setKnob(key, value, after) {
  const before = await override(key);
  const reply = await write(key, value);
  const notes = reply?.notes?.length ? `: ${reply.notes.join("; ")}` : "";

  after?.();
  toast(`${key} ${value === null ? "is as in the policy again" : `is ${value}`}${notes}`, {
    action: {
      label: "Undo",
      run: async () => {
        try {
          await write(key, before);
          toast(`${key} ${before === null ? "is as in the policy again" : `is ${before} again`}`);
          after?.();
        } catch (error) {
          toast(error.message, { error: true });
        }
      },
    },
  });
}
