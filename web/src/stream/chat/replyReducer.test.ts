import { expect, test } from "vitest";
import { applyChatEvents, type ChatEvent, type ReplyState } from "@/stream/chat/replyReducer";

const NEW: ReplyState = { blocks: [], status: "starting", cursor: 0, usage: null };
const TEXT = { event: "RunContent", blockId: "b1", nodeId: "agent" };

function after(...events: ChatEvent[]): ReplyState {
  return applyChatEvents(NEW, events);
}

test("text is appended where it belongs, however often it comes", () => {
  const events: ChatEvent[] = [
    { event: "RunStarted", seq: 2 },
    { ...TEXT, content: "Hello", offset: 0 },
    { ...TEXT, content: " world", offset: 5 },
    { ...TEXT, content: " wor", offset: 5 },
    { ...TEXT, content: "ld", offset: 9 },
  ];
  const state = after(...events);
  expect(state.blocks).toEqual([{ type: "text", id: "b1", nodeId: "agent", text: "Hello world" }]);
  expect([state.status, state.cursor]).toEqual(["executing", 2]);
});

test("offsets count characters, not halves of them", () => {
  const state = after(
    { ...TEXT, content: "🌊🌊 wave", offset: 0 },
    { ...TEXT, content: "s", offset: 7 },
    { ...TEXT, content: "!", offset: 2 },
  );
  expect(state.blocks).toMatchObject([{ text: "🌊🌊!" }]);
});

test("stored events that are known already change nothing", () => {
  const once = after({ ...TEXT, content: "Hi", offset: 0, seq: 4 });
  expect(applyChatEvents(once, [{ ...TEXT, content: "old", offset: 0, seq: 3 }])).toBe(once);
});

test("seeded blocks take the place of all that was shown", () => {
  const seed = { type: "text", id: "b9", nodeId: "agent", text: "again" } as const;
  const state = after({ ...TEXT, content: "void" }, { event: "SeedBlocks", blocks: [seed] });
  expect(state.blocks).toEqual([seed]);
});

test("a call of a tool runs, and completes or fails", () => {
  const tool = { id: "c1", toolName: "search", toolArgs: { q: "tea" } };
  const started = { event: "ToolCallStarted", blockId: "b2", nodeId: "agent", tool };
  const done = { ...started, event: "ToolCallCompleted", tool: { ...tool, toolResult: ["a"] } };
  expect(after(started).blocks).toMatchObject([{ toolName: "search", status: "running" }]);
  expect(after(started, done, started).blocks).toMatchObject([
    { toolArgs: { q: "tea" }, status: "completed", result: ["a"] },
  ]);
  const error = { code: "rejected", message: "Not today" };
  const failed = { ...started, event: "ToolCallFailed", error };
  expect(after(started, failed).blocks).toMatchObject([{ status: "failed", error }]);
});

test("a reply waits as long as one of its approvals is open", () => {
  const asks = (id: string) => ({
    event: "ApprovalRequired",
    blockId: id,
    nodeId: "agent",
    tool: { requestId: id, runId: "e1" },
  });
  const resolves = (id: string, state: "approved" | "rejected") => ({
    ...asks(id),
    event: "ApprovalResolved",
    state,
    answer: { decision: state },
  });
  const waiting = after(asks("r1"), asks("r2"), resolves("r1", "approved"));
  expect(waiting.status).toBe("paused");
  expect(waiting.blocks).toMatchObject([{ status: "approved" }, { status: "open" }]);
  expect(applyChatEvents(waiting, [resolves("r2", "rejected")]).status).toBe("executing");
});

test("the blocks of a member are inside its own", () => {
  const member = { blockId: "m", nodeId: "lead", memberRunId: "m1", memberName: "Critic" };
  const state = after(
    { event: "MemberRunStarted", ...member, task: "Judge it" },
    { ...TEXT, memberRunId: "m1", content: "Weak", offset: 0 },
    { event: "MemberRunCompleted", ...member, content: "Weak" },
    { ...TEXT, blockId: "b3", content: "It is weak", offset: 0 },
  );
  expect(state.blocks).toMatchObject([
    { type: "member_run", status: "completed", blocks: [{ type: "text", text: "Weak" }] },
    { type: "text", text: "It is weak" },
  ]);
});

test.each([
  ["RunCompleted", "completed"],
  ["RunCancelled", "cancelled"],
  ["RunError", "failed"],
])("%s ends the reply as %s", (event, status) => {
  const error = { code: "refused", message: "No" };
  const state = after({ event, blockId: "e", error });
  expect(state.status).toBe(status);
  expect(state.blocks).toHaveLength(event === "RunError" ? 1 : 0);
});

test("reasoning is running until it is completed; usage is the newest", () => {
  const at = { blockId: "t", nodeId: "agent" };
  const usage = { inputTokens: 1, outputTokens: 2, totalTokens: 3, costUsd: null };
  const state = after(
    { event: "ReasoningStarted", ...at },
    { event: "ReasoningStep", ...at, reasoningContent: "So", offset: 0 },
    { event: "ReasoningCompleted", ...at },
    { event: "TokenUsage", tokenUsage: usage },
  );
  expect(state.blocks).toMatchObject([{ type: "reasoning", text: "So", status: "completed" }]);
  expect(state.usage).toEqual(usage);
});
