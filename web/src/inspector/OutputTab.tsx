import { problemText } from "@/api/errorText";
import { tokensOf } from "@/api/executionSummary";
import { useNode } from "@/api/queries";
import type { NodeStatus } from "@/api/types";
import { writeJson } from "@/json";
import { openParents, parentsOf } from "@/stream/edges";
import { withNames } from "@/stream/names";
import { useRun } from "@/stream/RunProvider";
import type { NodeState, RunError, RunState } from "@/stream/runState";
import { isCostUnknown } from "@/stream/usage";
import { waitingWords } from "@/stream/waiting";
import { Button } from "@/ui/Button";
import { copyText } from "@/ui/copyText";
import { formatAmount, formatTime } from "@/ui/format";
import { Note } from "@/ui/Note";
import { Tag } from "@/ui/Tag";
import { CallList, LinkedCalls } from "./CallList";
import { FailureBox } from "./FailureBox";
import { Loaded } from "./Loaded";
import type { PartProps } from "./part";
import styles from "./parts.module.css";
import { Text } from "./Text";

type OutputTabProps = PartProps & { onSelect: (path: string) => void };

/** The calls that a step has made, and what it gave, also while it is still being written. */
export function OutputTab(props: OutputTabProps) {
  const { node, onSelect } = props;
  return (
    <>
      {node.status === "linked" ? (
        <LinkedCalls node={node} onSelect={onSelect} />
      ) : (
        <CallList node={node} onSelect={onSelect} />
      )}
      <Given {...props} />
    </>
  );
}

function Given({ executionId, node, onSelect }: OutputTabProps) {
  if (node.status === "retrying") return <BetweenAttempts executionId={executionId} node={node} />;
  if (node.status === "running") return <Streaming node={node} />;
  if (node.status === "completed" || node.status === "failed") {
    return <Stored executionId={executionId} node={node} />;
  }
  return (
    <>
      <NotThere {...{ executionId, node, onSelect }} />
      <Unfinished node={node} />
    </>
  );
}

/** Why the attempt before failed, and when the next one begins. */
function BetweenAttempts({ executionId, node }: PartProps) {
  const step = useNode(executionId, node.path);
  return (
    <>
      <Note>
        Attempt {node.attempt + 1} begins
        {node.retryAt === null ? " soon" : ` at ${formatTime(new Date(node.retryAt), true)}`}.
      </Note>
      {node.error && <Failure node={node} error={node.error} traceback={step.data?.traceback} />}
      <Unfinished node={node} />
    </>
  );
}

type FailureProps = Pick<PartProps, "node"> & { error: RunError; traceback: string | undefined };

function Failure({ node, error, traceback }: FailureProps) {
  const message = useRun((run) => withNames(run.nodes, error.message));
  return <FailureBox error={{ ...error, message }} where={node} traceback={traceback} />;
}

function Streaming({ node }: Pick<PartProps, "node">) {
  const warning = useRun((run) => lastWarning(run, node));
  const { tail, offset, length } = node.text;
  if (length === 0 && node.reasoning.length === 0) {
    return warning ? (
      <Note kind="warning">{problemText({ message: warning })}</Note>
    ) : (
      <p className={styles.quiet}>Nothing written yet.</p>
    );
  }
  return (
    <>
      <p className={styles.quiet}>{formatAmount(length, "character")} so far</p>
      <Reasoning node={node} />
      {offset > 0 && <p className={styles.quiet}>… the beginning is shown when the step is done</p>}
      <div className={styles.growing}>
        <Text text={tail} />
      </div>
    </>
  );
}

function Reasoning({ node: { text, reasoning } }: Pick<PartProps, "node">) {
  if (reasoning.length === 0) return null;
  return (
    <details className={styles.fold} open={text.length === 0}>
      <summary>Reasoning</summary>
      <Text text={reasoning.tail} />
    </details>
  );
}

const CUT_OFF: Partial<Record<NodeStatus, string>> = {
  cancelled: "cancelled while writing",
  failed: "failed after writing",
  retrying: "failed after writing",
};

/** What had been streamed when a step was cut off. */
function Unfinished({ node }: Pick<PartProps, "node">) {
  const { text, reasoning, status } = node;
  if (text.length + reasoning.length === 0) return null;
  return (
    <section aria-label="What it had written">
      {CUT_OFF[status] && (
        <header className={styles.outputHead}>
          <Tag>{CUT_OFF[status]}</Tag>
          <Button small kind="quiet" icon="copy" onClick={() => void copyText(text.tail)}>
            Copy
          </Button>
        </header>
      )}
      <p className={styles.quiet}>
        It had written {formatAmount(text.length, "character")}, which other steps do not get.
        {isCostUnknown(node) && " What that cost is not known."}
      </p>
      <Reasoning node={node} />
      {text.offset > 0 && <p className={styles.quiet}>…</p>}
      <Text text={text.tail} />
    </section>
  );
}

/** What a step that runs has logged last as a warning, such as that its provider lets it wait. */
function lastWarning(run: RunState, { path, spans }: NodeState): string | undefined {
  const since = spans.at(-1)?.from ?? "";
  const line = run.log.findLast((entry) => entry.path === path && entry.type === "logic_check");
  return line && line.at >= since ? line.text : undefined;
}

function Stored({ executionId, node }: PartProps) {
  const step = useNode(executionId, node.path);
  return (
    <>
      {node.error && node.status === "failed" && (
        <Failure node={node} error={node.error} traceback={step.data?.traceback} />
      )}
      {node.status === "failed" && <Unfinished node={node} />}
      <Loaded query={step} label="Loading what came out">
        {({ outputs }) => {
          const handles = Object.entries(outputs ?? {});
          if (handles.length === 0) {
            return node.status === "failed" ? null : (
              <p className={styles.quiet}>It gave nothing.</p>
            );
          }
          return handles.map(([handle, output]) => (
            <Output key={handle} handle={handle} output={output} tokens={tokensOf(node.usage)} />
          ));
        }}
      </Loaded>
    </>
  );
}

/** What left one output of a step. */
export function Output({
  handle,
  output,
  tokens,
}: {
  handle: string;
  output: unknown;
  tokens: number;
}) {
  const { type, value } = output as { type: string; value: unknown };
  const text = typeof value === "string" ? value : writeJson(value, 2);
  return (
    <section aria-label={handle}>
      <header className={styles.outputHead}>
        <Tag>{handle === "output" ? type : `${handle}: ${type}`}</Tag>
        {tokens > 0 && <span>{formatAmount(tokens, "token")}</span>}
        <Button small kind="quiet" icon="copy" onClick={() => void copyText(text)}>
          Copy
        </Button>
      </header>
      <Text text={text} />
    </section>
  );
}

const NOT_THERE: Partial<Record<NodeStatus, string>> = {
  pending: "Not started.",
  skipped: "Skipped.",
  blocked: "Blocked.",
  cancelled: "Cancelled.",
  linked: "Other steps use it; it gives nothing itself.",
  not_reached: "The inputs of this run do not lead here.",
};

/** Why there is no output, and the steps that it depends on. */
function NotThere({ node, onSelect }: OutputTabProps) {
  const run = useRun((state) => state);
  const causes = causesOf(run, node);
  const needs = node.status === "pending" && causes.length > 0;
  const state = node.status === "waiting" ? waitingWords(run, node) : NOT_THERE[node.status];
  return (
    <div className={styles.quiet}>
      <p>
        <b>{state}</b>{" "}
        {needs
          ? `Needs ${NAMES.format(causes.map((each) => each.name))}.`
          : withNames(run.nodes, node.reason ?? node.blockedBy?.error.message ?? "")}
      </p>
      <div className={styles.shows}>
        {causes.map(({ path, name }) => (
          <Button key={path} small onClick={() => onSelect(path)}>
            Show {name}
          </Button>
        ))}
      </div>
    </div>
  );
}

const NAMES = new Intl.ListFormat("en");

function causesOf(run: RunState, node: NodeState): NodeState[] {
  switch (node.status) {
    case "pending":
      return openParents(run, node);
    case "skipped":
      return parentsOf(run, node);
    case "blocked": {
      const cause = run.nodes.get(node.blockedBy?.node ?? "");
      return cause ? [cause] : [];
    }
    default:
      return [];
  }
}
