import type { ExecutionStatus, ReplyUsage } from "@/api/types";
import type {
  ApprovalBlock,
  ApprovalState,
  BlockError,
  ErrorBlock,
  MemberRunBlock,
  ReasoningBlock,
  ReplyBlock,
  RequestedCall,
  TextBlock,
  ToolCallBlock,
} from "@/stream/chat/blocks";

/** One event of a reply, as `docs/chat.md` has them. */
export type ChatEvent = {
  readonly event: string;
  /** The cursor after it; of streamed text, and of all but the last event of a stored one, absent. */
  readonly seq?: number;
  readonly blockId?: string;
  readonly nodeId?: string;
  readonly content?: string;
  readonly reasoningContent?: string;
  readonly offset?: number;
  readonly memberRunId?: string;
  readonly memberName?: string;
  readonly task?: string;
  readonly blocks?: readonly ReplyBlock[];
  readonly error?: BlockError;
  readonly state?: ApprovalState;
  readonly answer?: unknown;
  readonly tool?: unknown;
  readonly tokenUsage?: ReplyUsage;
};

/** A reply as far as its events have come. */
export type ReplyState = {
  readonly blocks: readonly ReplyBlock[];
  readonly status: ExecutionStatus;
  /** The last event that is here. */
  readonly cursor: number;
  readonly usage: ReplyUsage | null;
};

/** The events after which nothing comes, with the status that they mean. */
const ENDS: Readonly<Record<string, ExecutionStatus>> = {
  RunCompleted: "completed",
  RunCancelled: "cancelled",
  RunError: "failed",
};

/** Return whether an event is the last one of its reply. */
export function isLast(event: ChatEvent): boolean {
  return event.event in ENDS;
}

/** Return whether nothing of a reply changes any more. */
export function hasEnded(status: string): boolean {
  return Object.values(ENDS).some((end) => end === status);
}

/** Return the reply after some events. Events that come twice change nothing. */
export function applyChatEvents(state: ReplyState, events: readonly ChatEvent[]): ReplyState {
  return events.reduce(applyChatEvent, state);
}

function applyChatEvent(state: ReplyState, event: ChatEvent): ReplyState {
  if (event.seq !== undefined && event.seq <= state.cursor) return state;
  const blocks = event.event === "SeedBlocks" ? (event.blocks ?? []) : blocksAfter(state, event);
  return {
    blocks,
    status: statusAfter(state.status, blocks, event),
    cursor: event.seq ?? state.cursor,
    usage: event.tokenUsage ?? state.usage,
  };
}

function statusAfter(
  status: ExecutionStatus,
  blocks: readonly ReplyBlock[],
  { event }: ChatEvent,
): ExecutionStatus {
  const end = ENDS[event];
  if (end !== undefined) return end;
  if (event === "ApprovalRequired") return "paused";
  if (event === "ApprovalResolved") return hasOpenApproval(blocks) ? "paused" : "executing";
  return status === "starting" ? "executing" : status;
}

function hasOpenApproval(blocks: readonly ReplyBlock[]): boolean {
  return blocks.some(
    (block) =>
      (block.type === "approval" && block.status === "open") ||
      (block.type === "member_run" && hasOpenApproval(block.blocks)),
  );
}

/** Return what an event makes of the block that it names, or of none yet; null: nothing. */
type BlockChange = (before: ReplyBlock | undefined, event: ChatEvent) => ReplyBlock | null;

const CHANGES: Readonly<Record<string, BlockChange>> = {
  RunContent: (before, event) => ({
    ...place("text", event),
    text: cutAndAppend(before as TextBlock | undefined, event.offset, event.content),
  }),
  ReasoningStarted: (before, event) =>
    before ?? { ...place("reasoning", event), text: "", status: "running" },
  ReasoningStep: (before, event) => ({
    ...place("reasoning", event),
    text: cutAndAppend(before as ReasoningBlock | undefined, event.offset, event.reasoningContent),
    status: "running",
  }),
  ReasoningCompleted: (before) =>
    before === undefined ? null : { ...(before as ReasoningBlock), status: "completed" },
  ToolCallStarted: (before, event) => before ?? toolCall(event, "running"),
  ToolCallCompleted: (before, event) => ({
    ...((before as ToolCallBlock | undefined) ?? toolCall(event, "completed")),
    status: "completed",
    result: calledTool(event).toolResult,
  }),
  ToolCallFailed: (before, event) => ({
    ...((before as ToolCallBlock | undefined) ?? toolCall(event, "failed")),
    status: "failed",
    error: event.error ?? null,
  }),
  ApprovalRequired: (before, event) => before ?? approval(event),
  ApprovalResolved: (before, event): ApprovalBlock => ({
    ...((before as ApprovalBlock | undefined) ?? approval(event)),
    status: event.state ?? "closed",
    answer: event.answer,
  }),
  MemberRunStarted: (before, event) => before ?? memberRun(event),
  MemberRunCompleted: (before, event): MemberRunBlock => ({
    ...((before as MemberRunBlock | undefined) ?? memberRun(event)),
    status: "completed",
    result: event.content,
  }),
  MemberRunError: (before, event): MemberRunBlock => ({
    ...((before as MemberRunBlock | undefined) ?? memberRun(event)),
    status: "failed",
    error: event.error ?? null,
  }),
  FlowNodeError: failure,
  RunError: failure,
};

/** Events of the block of a member itself; `memberRunId` of all others says where a block is. */
const ABOUT_MEMBERS: ReadonlySet<string> = new Set([
  "MemberRunStarted",
  "MemberRunCompleted",
  "MemberRunError",
]);

function blocksAfter(state: ReplyState, event: ChatEvent): readonly ReplyBlock[] {
  const change = CHANGES[event.event];
  if (change === undefined || event.blockId === undefined) return state.blocks;
  const member = ABOUT_MEMBERS.has(event.event) ? undefined : event.memberRunId;
  return changed(state.blocks, member, event, change);
}

/** Return the blocks with one changed or added: among these, or among those of a member. */
function changed(
  blocks: readonly ReplyBlock[],
  member: string | undefined,
  event: ChatEvent,
  change: BlockChange,
): readonly ReplyBlock[] {
  if (member !== undefined) {
    return blocks.map((block) => {
      if (block.type !== "member_run") return block;
      const inside = block.memberRunId === member ? undefined : member;
      const after = changed(block.blocks, inside, event, change);
      return after === block.blocks ? block : { ...block, blocks: after };
    });
  }
  const index = blocks.findIndex(({ id }) => id === event.blockId);
  const after = change(blocks[index], event);
  if (after === null) return blocks;
  return index < 0 ? [...blocks, after] : blocks.with(index, after);
}

function place<Type extends string>(type: Type, { blockId, nodeId }: ChatEvent) {
  return { type, id: blockId ?? "", nodeId: nodeId ?? null };
}

/** Offsets count characters (code points), as those of the events of executions do. */
function cutAndAppend(
  before: { readonly text: string } | undefined,
  offset: number | undefined,
  content = "",
): string {
  const text = before?.text ?? "";
  if (offset === undefined) return text + content;
  const isWhole = offset >= text.length;
  return (isWhole ? text : Array.from(text).slice(0, offset).join("")) + content;
}

function calledTool({ tool }: ChatEvent): {
  id: string;
  toolName: string;
  toolArgs: unknown;
  toolResult?: unknown;
} {
  return tool as ReturnType<typeof calledTool>;
}

function toolCall(event: ChatEvent, status: ToolCallBlock["status"]): ToolCallBlock {
  const { id, toolName, toolArgs } = calledTool(event);
  const named = { toolCallId: id, toolName, toolArgs };
  return { ...place("tool_call", event), ...named, status, result: undefined, error: null };
}

function approval(event: ChatEvent): ApprovalBlock {
  const tool = event.tool as RequestedCall;
  const about = { requestId: tool.requestId, executionId: tool.runId, tool };
  return { ...place("approval", event), ...about, status: "open", answer: null };
}

function memberRun(event: ChatEvent): MemberRunBlock {
  return {
    ...place("member_run", event),
    memberRunId: event.memberRunId ?? "",
    memberName: event.memberName ?? "",
    task: event.task ?? "",
    status: "running",
    blocks: [],
    result: undefined,
    error: null,
  };
}

function failure(_before: ReplyBlock | undefined, event: ChatEvent): ErrorBlock | null {
  if (event.error === undefined) return null;
  return { ...place("error", event), error: event.error };
}
