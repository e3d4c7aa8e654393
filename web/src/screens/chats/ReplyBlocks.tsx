import { type ReactNode, useState } from "react";
import { Text } from "@/inspector/Text";
import { writeJson } from "@/json";
import type {
  MemberRunBlock,
  ReasoningBlock,
  ReplyBlock,
  ToolCallBlock,
} from "@/stream/chat/blocks";
import { argumentsText } from "@/stream/log";
import { formatAmount } from "@/ui/format";
import { Icon } from "@/ui/icons";
import { Markdown } from "@/ui/Markdown";
import { Note } from "@/ui/Note";
import { plainLine } from "@/ui/plainLine";
import { StatusIcon, type StatusName } from "@/ui/Status";
import { ApprovalInReply } from "./ApprovalInReply";
import styles from "./ReplyBlocks.module.css";

type ReplyBlocksProps = {
  blocks: readonly ReplyBlock[];
  /** Nothing follows the last text yet. */
  isWriting: boolean;
};

/** The parts of a reply in their order; what it thought and called is folded. */
export function ReplyBlocks({ blocks, isWriting }: ReplyBlocksProps) {
  const last = blocks.at(-1);
  return groupsOf(blocks).map((group) =>
    group.isFolded ? (
      <div key={group.blocks[0]?.id} className={styles.folds}>
        {group.blocks.map((block) => (
          <Folded key={block.id} block={block} />
        ))}
      </div>
    ) : (
      group.blocks.map((block) => (
        <Open key={block.id} block={block} isWriting={isWriting && block === last} />
      ))
    ),
  );
}

type Group = { isFolded: boolean; blocks: ReplyBlock[] };

/** Neighbours that are folded are one list. */
function groupsOf(blocks: readonly ReplyBlock[]): Group[] {
  const groups: Group[] = [];
  for (const block of blocks) {
    if (block.type === "text" && block.text === "") continue;
    const isFolded = ["reasoning", "tool_call", "member_run"].includes(block.type);
    const group = groups.at(-1);
    if (group?.isFolded === isFolded) group.blocks.push(block);
    else groups.push({ isFolded, blocks: [block] });
  }
  return groups;
}

function Open({ block, isWriting }: { block: ReplyBlock; isWriting: boolean }) {
  switch (block.type) {
    case "text":
      return (
        <div className={styles.text} data-writing={isWriting}>
          <Markdown text={block.text} />
        </div>
      );
    case "approval":
      return <ApprovalInReply block={block} />;
    case "error":
      return (
        <Note kind="error">
          {block.error.message}
          {block.error.hint && <p>{block.error.hint}</p>}
        </Note>
      );
    default:
      return null;
  }
}

function Folded({ block }: { block: ReplyBlock }) {
  switch (block.type) {
    case "reasoning":
      return <Reasoning block={block} />;
    case "tool_call":
      return <ToolCall block={block} />;
    case "member_run":
      return <MemberRun block={block} />;
    default:
      return null;
  }
}

function Reasoning({ block }: { block: ReasoningBlock }) {
  const isRunning = block.status === "running";
  const line = isRunning ? lastWords(block.text) : "";
  return (
    <Fold
      sign={isRunning ? <StatusIcon status="running" /> : <Icon name="brain" small />}
      title={isRunning ? "Thinking" : "Thought"}
      line={line}
      word={isRunning ? "" : formatAmount(wordCount(block.text), "word")}
    >
      <Markdown text={block.text} />
    </Fold>
  );
}

function ToolCall({ block }: { block: ToolCallBlock }) {
  const { toolName, toolArgs, status, result, error } = block;
  return (
    <Fold
      sign={<StatusIcon status={status} />}
      title={toolName}
      line={error ? error.message : plainLine(argumentsText(toolArgs))}
      word={WORDS[error?.code === "rejected" ? "rejected" : status]}
    >
      <Part title="Arguments" value={toolArgs} />
      {error && <Note kind="error">{error.message}</Note>}
      <Part title="Result" value={result} />
    </Fold>
  );
}

function MemberRun({ block }: { block: MemberRunBlock }) {
  const { memberName, task, status, blocks, error } = block;
  return (
    <Fold
      sign={<StatusIcon status={status} />}
      title={memberName}
      line={error ? error.message : plainLine(task)}
      word={WORDS[status]}
    >
      <Part title="Task" value={task} />
      <ReplyBlocks blocks={blocks} isWriting={status === "running"} />
      {error && <Note kind="error">{error.message}</Note>}
    </Fold>
  );
}

const WORDS: Readonly<Record<"running" | "completed" | "failed" | "rejected", string>> = {
  running: "Running",
  completed: "Completed",
  failed: "Failed",
  rejected: "Rejected",
} satisfies Partial<Record<StatusName | "rejected", string>>;

type FoldProps = {
  sign: ReactNode;
  title: string;
  line: string | undefined;
  word: string;
  children: ReactNode;
};

function Fold({ sign, title, line, word, children }: FoldProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details
      className={styles.fold}
      open={isOpen}
      onToggle={(event) => setOpen(event.currentTarget.open)}
    >
      <summary>
        {sign}
        <b title={title}>{title}</b>
        <span className={styles.line}>{line}</span>
        {word && <span className={styles.word}>{word}</span>}
        <Icon name={isOpen ? "down" : "right"} small />
      </summary>
      {isOpen && <div className={styles.body}>{children}</div>}
    </details>
  );
}

function Part({ title, value }: { title: string; value: unknown }) {
  if (value === undefined || value === null || value === "") return null;
  const text = typeof value === "string" ? value : writeJson(value, 2);
  return (
    <section aria-label={title}>
      <h4>{title}</h4>
      <Text text={text} />
    </section>
  );
}

/** The end of a text that grows, from the beginning of a word. */
function lastWords(text: string): string {
  const line = plainLine(text.slice(-160));
  return text.length > 160 ? line.slice(line.indexOf(" ") + 1) : line;
}

function wordCount(text: string): number {
  return text.split(/\s+/).filter(Boolean).length;
}
