import { expect, test } from "vitest";
import type { ExecutionDigest, PendingRequest } from "@/api/types";
import { readRequest } from "@/inspector/requestFields";
import {
  agentOf,
  nextSteps,
  PLAN_APPROVAL,
  standInWords,
  timeLeft,
  timeoutWords,
  titleOf,
} from "./requestWords";

const SINCE = "2026-01-31T12:00:00Z";
const DIGEST: ExecutionDigest = {
  steps: 4,
  waves: [{ completed: 1 }, { waiting: 1, running: 1 }, { pending: 1 }],
  models: [],
  usage: { calls: 0, input_tokens: 0, output_tokens: 0, cost_usd: null, estimated: false },
  parent: null,
  waitingForInput: true,
  inputs: "",
};

function asked(request: unknown): PendingRequest {
  return {
    execution_id: "e1",
    request_id: "r9",
    title: "A note",
    user_prompt: "",
    node_name: "Check",
    path: "check",
    request,
    since: SINCE,
    timeout_s: 600,
    deadline: "2026-01-31T12:10:00Z",
  };
}

test("a deadline is near in its last five minutes", () => {
  const at = (time: string) => timeLeft(asked({}), Date.parse(`2026-01-31T${time}Z`));
  expect(at("12:00:07")).toEqual({ words: "9:53 left", isSoon: false, share: 593 / 600 });
  expect(at("12:07:50")).toMatchObject({ words: "2:10 left", isSoon: true });
  expect(at("12:10:01")).toMatchObject({ words: "The time is over", share: 0 });
  expect(timeLeft({ deadline: null, since: SINCE }, 0).words).toBe("no limit");
});

test("it is said what happens without an answer", () => {
  expect(timeoutWords({ deadline: "2026-01-31T12:10:00Z", since: SINCE }, "ask_again")).toMatch(
    /^If nobody answers by ..:10:00, it counts as “Ask again”\.$/,
  );
  expect(timeoutWords({ deadline: "2026-02-07T12:00:00Z", since: SINCE }, null)).toMatch(
    /^If nobody answers by 7 Feb, ..:00, it is over\.$/,
  );
  expect(timeoutWords({ deadline: null, since: SINCE }, null)).toBe(
    "It waits until somebody answers.",
  );
});

test("what follows a decision is read from the edges of its handle", () => {
  const fields = readRequest(asked({ kind: "approval", actions: ["approve", "reject"] }));
  const edge = (target: string, sourceHandle: string) => ({
    source: "check",
    sourceHandle,
    target,
    data: { channel: "flow" },
  });
  const graph = {
    nodes: ["check", "mail", "log"].map((id) => ({ id, type: "text", name: id.toUpperCase() })),
    edges: [edge("mail", "approve"), edge("log", "approve")],
  };
  expect(nextSteps(fields, "check", graph)).toEqual([
    { action: "approve", words: "MAIL and LOG come next." },
    {
      action: "reject",
      words: "Nothing follows. Steps that wait for another answer are skipped.",
    },
  ]);
  expect(nextSteps(fields, "loop[0].check", graph)).toEqual([]);
  expect(nextSteps(fields, "check", null)).toEqual([]);
});

test("the approval of a plan is named as such, and needs no graph to say what follows", () => {
  const request = asked({ kind: PLAN_APPROVAL, actions: ["approve", "reject", "edit"] });
  const fields = readRequest(request);
  expect(titleOf(request, fields)).toBe("Approve the plan");
  expect(nextSteps(fields, null, null).map(({ words }) => words)).toContain(
    "The first steps start.",
  );
});

test("it is said how far a run is that waits", () => {
  expect(standInWords(DIGEST)).toBe("1 step runs meanwhile. 1 step has not started.");
});

test("a request about a call names the tool, the agent and what each decision does", () => {
  const tool = { name: "send_mail", kind: "tool", effect: "once", call_id: "c1" };
  const request = {
    ...asked({ kind: "approval", actions: ["approve", "reject"], value: { to: "Ada" }, tool }),
    path: "lead[delegate-1]/clerk[approve-1-1]/send_mail",
  };
  const fields = readRequest(request);
  expect(titleOf(request, fields)).toBe("Call send_mail");
  const graph = {
    nodes: [{ id: "clerk", type: "agent", name: "The clerk", data: {} }],
    edges: [],
  };
  expect(agentOf(request, graph)).toBe("The clerk");
  expect(agentOf(request, null)).toBe("clerk");
  expect(nextSteps(fields, request.path, null).map(({ words }) => words)).toEqual([
    "The tool is called with these arguments.",
    "The tool is not called. The agent reads your note and goes on.",
  ]);
  const cutOff = readRequest(asked({ kind: "interrupted", actions: ["fail"], tool }));
  expect(titleOf(request, cutOff)).toBe("send_mail was cut off");
  expect(nextSteps(cutOff, request.path, null)).toEqual([
    { action: "fail", words: "The agent fails." },
  ]);
});
