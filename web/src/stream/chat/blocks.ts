import type { JsonSchema } from "@/ui/schema";

/** What a person is asked inside a reply: the call of a tool, or a question of a step. */
export type RequestedCall = {
  readonly runId: string;
  readonly requestId: string;
  readonly kind: string;
  readonly toolName: string;
  readonly riskLevel: string;
  readonly summary: string;
  readonly options: readonly string[];
  readonly editable: boolean;
  readonly timeoutMs: number | null;
  readonly tools: readonly {
    readonly id: string;
    readonly toolName: string;
    readonly toolArgs: unknown;
    readonly editableArgs: JsonSchema | null;
  }[];
};

export type BlockError = {
  readonly code: string;
  readonly message: string;
  readonly hint?: string;
};

export type ApprovalState = "open" | "approved" | "rejected" | "answered" | "timeout" | "closed";

type Block<Type extends string, Fields> = {
  readonly type: Type;
  /** Unique within its message, the same in events and after a reload. */
  readonly id: string;
  /** The path of the step; null for the run itself. */
  readonly nodeId: string | null;
} & Readonly<Fields>;

export type TextBlock = Block<"text", { text: string }>;
export type ReasoningBlock = Block<"reasoning", { text: string; status: "running" | "completed" }>;
export type ToolCallBlock = Block<
  "tool_call",
  {
    toolCallId: string;
    toolName: string;
    toolArgs: unknown;
    status: "running" | "completed" | "failed";
    result: unknown;
    error: BlockError | null;
  }
>;
export type ApprovalBlock = Block<
  "approval",
  {
    requestId: string;
    executionId: string;
    status: ApprovalState;
    tool: RequestedCall;
    answer: unknown;
  }
>;
export type MemberRunBlock = Block<
  "member_run",
  {
    memberRunId: string;
    memberName: string;
    task: string;
    status: "running" | "completed" | "failed";
    blocks: readonly ReplyBlock[];
    result: unknown;
    error: BlockError | null;
  }
>;
export type ErrorBlock = Block<"error", { error: BlockError }>;

/** A part of a reply. */
export type ReplyBlock =
  | TextBlock
  | ReasoningBlock
  | ToolCallBlock
  | ApprovalBlock
  | MemberRunBlock
  | ErrorBlock;

/** Return the blocks of a reply with those of its members, in their order. */
export function allBlocks(blocks: readonly ReplyBlock[]): ReplyBlock[] {
  return blocks.flatMap((block) =>
    block.type === "member_run" ? [block, ...allBlocks(block.blocks)] : [block],
  );
}

/** Return the text of a reply, without that of its members. */
export function replyText(blocks: readonly ReplyBlock[]): string {
  return blocks
    .flatMap((block) => (block.type === "text" && block.text ? [block.text] : []))
    .join("\n\n");
}
