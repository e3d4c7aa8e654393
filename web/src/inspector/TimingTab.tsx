import { useExplain } from "@/api/queries";
import { writeJson } from "@/json";
import { argumentsText } from "@/stream/log";
import { tokenWords } from "@/stream/usage";
import { formatDuration, formatTime, formatUsd } from "@/ui/format";
import { Loaded } from "./Loaded";
import type { PartProps } from "./part";
import styles from "./parts.module.css";

const KIND_WORDS = {
  queued: "Queued",
  working: "Worked",
  waiting: "Waited",
  backoff: "Waited to try again",
} as const;

/** The course of a step, attempt by attempt, and its cost. */
export function TimingTab({ executionId, node }: PartProps) {
  const { usage } = node;
  return (
    <>
      <dl className={styles.pairs}>
        <dt>Wave</dt>
        <dd>{node.wave ?? "none"}</dd>
        <dt>Attempts</dt>
        <dd>{node.attempt}</dd>
        {node.durationS !== null && (
          <>
            <dt>Took</dt>
            <dd>{formatDuration(node.durationS)}</dd>
          </>
        )}
        {usage.calls > 0 && (
          <>
            <dt>Tokens</dt>
            <dd>{tokenWords(usage)}</dd>
            <dt>Cost</dt>
            <dd>
              {usage.cost_usd === null ? "–" : formatUsd(usage.cost_usd)}
              {usage.estimated && ", estimated"}
            </dd>
          </>
        )}
        {node.reused && (
          <>
            <dt>Reused from</dt>
            <dd>{node.reused.execution_id}</dd>
          </>
        )}
      </dl>
      <Spans node={node} />
      <Course executionId={executionId} node={node} />
    </>
  );
}

function Spans({ node }: Pick<PartProps, "node">) {
  if (node.spans.length === 0) return null;
  return (
    <ol className={styles.course} aria-label="Times">
      {node.spans.map((span) => (
        <li key={`${span.kind}${span.from}`}>
          <time dateTime={span.from}>{formatTime(new Date(span.from), true)}</time>
          <span>
            {KIND_WORDS[span.kind]}
            {node.attempt > 1 && span.attempt > 0 && `, attempt ${span.attempt}`}
          </span>
          <span>
            {span.to
              ? formatDuration((Date.parse(span.to) - Date.parse(span.from)) / 1000)
              : "until now"}
          </span>
        </li>
      ))}
    </ol>
  );
}

/** The history of the step, in order, with the answers to its requests. */
function Course({ executionId, node }: PartProps) {
  const explanation = useExplain(executionId, node.path);
  return (
    <Loaded query={explanation} label="Loading what happened">
      {({ course }) => (
        <ol className={styles.course} aria-label="What happened">
          {course.map((entry) => (
            <li key={String(entry.seq)}>
              <time dateTime={String(entry.at)}>
                {formatTime(new Date(String(entry.at)), true)}
              </time>
              <span>{String(entry.what).replaceAll("-", " ")}</span>
              <span>{detailOf(entry)}</span>
            </li>
          ))}
        </ol>
      )}
    </Loaded>
  );
}

function detailOf(entry: Record<string, unknown>): string {
  const error = entry.error as { message?: string } | undefined;
  if (entry.what === "called") {
    const call = `${entry.name}: ${argumentsText(entry.arguments)}`;
    return error?.message ? `${call} failed: ${error.message}` : call;
  }
  if (error?.message) return error.message;
  if (typeof entry.message === "string") return entry.message;
  if (typeof entry.reason === "string") return entry.reason;
  return entry.answer === undefined ? "" : writeJson(entry.answer);
}
