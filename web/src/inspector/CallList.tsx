import { useState } from "react";
import { writeJson } from "@/json";
import { callsOfLinked } from "@/stream/calls";
import { callName, callSeconds, innerNodes } from "@/stream/callWords";
import { argumentsText } from "@/stream/log";
import { useRun } from "@/stream/RunProvider";
import type { NodeState, RunState, ToolCall } from "@/stream/runState";
import { Button } from "@/ui/Button";
import { formatAmount, formatDuration } from "@/ui/format";
import { Note } from "@/ui/Note";
import { plainLine } from "@/ui/plainLine";
import { StatusIcon } from "@/ui/Status";
import { Tag } from "@/ui/Tag";
import { useNow } from "@/ui/useNow";
import { answererWords, answerWords } from "./answerWords";
import styles from "./CallList.module.css";
import { CallResult } from "./CallResult";
import { CALL_LOOKS } from "./callLooks";
import parts from "./parts.module.css";
import { Text } from "./Text";
import { TOOL_KINDS } from "./ToolAbout";

type CallListProps = {
  node: NodeState;
  onSelect: (path: string) => void;
};

/** The calls of an agent in their order, each folded; those of agents that it calls are inside. */
export function CallList({ node, onSelect }: CallListProps) {
  const run = useRun((state) => state);
  const { calls } = node;
  if (calls.length === 0) return null;
  const hasAttempts = calls.some((call) => call.attempt !== calls[0]?.attempt);
  return (
    <section className={styles.calls} aria-label={`Calls of ${node.name}`}>
      <p className={styles.count}>{countWords(calls)}</p>
      <ol>
        {calls.map((call) => (
          <CallRow
            key={`${call.attempt} ${call.id}`}
            {...{ run, call, onSelect }}
            path={node.path}
            isOfAttempt={hasAttempts}
          />
        ))}
      </ol>
    </section>
  );
}

/** The calls that agents have made of a linked node. */
export function LinkedCalls({ node, onSelect }: CallListProps) {
  const run = useRun((state) => state);
  const used = callsOfLinked(run, node);
  if (used.length === 0) return null;
  return (
    <section className={styles.calls} aria-label={`Calls of ${node.name}`}>
      <p className={styles.count}>{countWords(used.map(({ call }) => call))}</p>
      <ol>
        {used.map(({ caller, call }) => (
          <CallRow
            key={`${caller.path} ${call.attempt} ${call.id}`}
            {...{ run, call, onSelect }}
            path={caller.path}
            caller={caller}
          />
        ))}
      </ol>
    </section>
  );
}

type CallRowProps = Omit<CallListProps, "node"> & {
  run: RunState;
  call: ToolCall;
  /** Of the agent that calls. */
  path: string;
  /** Say which attempt it belongs to. */
  isOfAttempt?: boolean;
  /** Lead to the agent that calls. */
  caller?: NodeState;
};

/** One call: name, outcome and duration; its arguments and its result when it is unfolded. */
function CallRow(props: CallRowProps) {
  const { run, call, path, isOfAttempt = false } = props;
  const now = useNow(call.status === "running");
  const [isOpen, setOpen] = useState(false);
  const { icon, word } = CALL_LOOKS[call.status];
  const seconds = callSeconds(call, now);
  return (
    <li className={styles.call} data-status={call.status}>
      <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          <StatusIcon status={icon} />
          <b>{callName(run, path, call)}</b>
          <span className={styles.line}>{lineOf(call)}</span>
          {isOfAttempt && <span>attempt {call.attempt}</span>}
          <span className={styles.word}>{word}</span>
          {seconds !== null && <span className={styles.time}>{formatDuration(seconds)}</span>}
        </summary>
        {isOpen && <CallBody {...props} />}
      </details>
    </li>
  );
}

function CallBody({ run, call, path, caller, onSelect }: CallRowProps) {
  const inside = innerNodes(run, call);
  return (
    <div className={styles.body}>
      {call.kind !== "tool" && (
        <p className={styles.facts}>
          <Tag>{TOOL_KINDS[call.kind] ?? call.kind}</Tag>
          <code>{call.name}</code>
        </p>
      )}
      {call.answered && (
        <p className={parts.place}>
          <span>{answerWords(call.answered)}</span>
          <span>by {answererWords(call.answered)}</span>
        </p>
      )}
      <Part title="Arguments" value={call.arguments} />
      {call.requested !== undefined && (
        <Part title="Asked for by the model, changed by a person" value={call.requested} />
      )}
      {call.error && (
        <Note kind={call.status === "rejected" ? "warning" : "error"}>{call.error.message}</Note>
      )}
      {call.result !== undefined && (
        <section aria-label="Result">
          <h4>Result</h4>
          <CallResult executionId={run.executionId} {...{ path, call }} />
        </section>
      )}
      {caller && (
        <div className={styles.inside}>
          <Button small icon="right" onClick={() => onSelect(caller.path)}>
            Open {caller.name}, which called it
          </Button>
        </div>
      )}
      {inside.map((node) => (
        <div key={node.path} className={styles.inside}>
          <Button small icon="right" onClick={() => onSelect(node.path)}>
            Open {node.name}
          </Button>
          <CallList node={node} onSelect={onSelect} />
        </div>
      ))}
    </div>
  );
}

function Part({ title, value }: { title: string; value: unknown }) {
  if (value === undefined) return null;
  const text = typeof value === "string" ? value : writeJson(value, 2);
  return (
    <section aria-label={title}>
      <h4>{title}</h4>
      <Text text={text} />
    </section>
  );
}

/** Returns what is beside the name of a call: how far it is, why it failed, or its arguments. */
function lineOf({ progress, error, status, arguments: given }: ToolCall): string {
  if (status === "running" && progress) return progress;
  return plainLine(error?.message ?? (given === undefined ? "" : argumentsText(given)));
}

/** "6 calls, 1 failed, 1 rejected" */
function countWords(calls: readonly ToolCall[]): string {
  const counted = (["waiting", "running", "failed", "rejected", "cancelled"] as const).flatMap(
    (status) => {
      const count = calls.filter((call) => call.status === status).length;
      return count > 0 ? [`${count} ${CALL_LOOKS[status].word.toLowerCase()}`] : [];
    },
  );
  return [formatAmount(calls.length, "call"), ...counted].join(", ");
}
