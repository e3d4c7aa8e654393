import { Link } from "react-router";
import { useFlow } from "@/api/queries";
import type { ChatResponse, MessageResponse } from "@/api/types";
import { TypeIcon } from "@/canvas/TypeIcon";
import { WaveGlyph } from "@/canvas/WaveGlyph";
import { statusesByWave } from "@/screens/run/runSummary";
import { countBranches } from "@/stream/chat/tree";
import { RunProvider, useRunOverview } from "@/stream/RunProvider";
import { formatAmount, formatCount, formatUsd } from "@/ui/format";
import { Skeleton } from "@/ui/Skeleton";
import { Status } from "@/ui/Status";
import styles from "./AboutChat.module.css";

type AboutChatProps = {
  chat: ChatResponse;
  /** The last answer of the branch that is shown. */
  reply: MessageResponse | undefined;
};

/** What stands behind a chat: what answers, the run of the last answer, and what it has used. */
export function AboutChat({ chat, reply }: AboutChatProps) {
  return (
    <div className={styles.about}>
      <section>
        <h3>{chat.plan_id ? "Runs on the flow" : "Answered by"}</h3>
        {chat.plan_id ? (
          <FlowName flowId={chat.plan_id} revision={chat.plan_revision} />
        ) : (
          <ModelName chat={chat} />
        )}
      </section>
      {reply?.execution_id && reply.status !== "starting" && (
        <RunProvider
          executionId={reply.execution_id}
          waiting={<Skeleton label="Loading the run" lines={3} />}
        >
          <AnswerRun executionId={reply.execution_id} />
        </RunProvider>
      )}
      <Totals chat={chat} />
    </div>
  );
}

function FlowName({ flowId, revision }: { flowId: string; revision: number | null }) {
  const { data: flow } = useFlow(flowId, revision);
  return (
    <p className={styles.row}>
      <TypeIcon type="inner" />
      <Link to={`/flows/${flowId}`}>{flow?.name ?? "A flow"}</Link>
      {flow && <span className={styles.quiet}>revision {flow.revision}</span>}
    </p>
  );
}

function ModelName({ chat: { config } }: { chat: ChatResponse }) {
  const tools = config?.tools ?? [];
  return (
    <>
      <p className={styles.row}>
        <TypeIcon type="agent" />
        <span>{config?.model ?? "The default model"}</span>
        {config?.provider && <span className={styles.quiet}>{config.provider}</span>}
      </p>
      {tools.map((name) => (
        <p key={name} className={styles.row}>
          <TypeIcon type="tool" />
          <span>{name}</span>
        </p>
      ))}
    </>
  );
}

/** The graph of an answer, wave by wave, as it runs. */
function AnswerRun({ executionId }: { executionId: string }) {
  const run = useRunOverview();
  const steps = run.waves.flatMap(({ nodes }) => nodes.flatMap((id) => run.nodes.get(id) ?? []));
  return (
    <section>
      <h3>
        This answer
        <WaveGlyph waves={statusesByWave(run)} />
      </h3>
      <ol className={styles.steps}>
        {steps.map((step) => (
          <li key={step.path} className={styles.row}>
            <TypeIcon type={step.type ?? ""} />
            <span title={step.name}>{step.name}</span>
            <Status status={step.status} />
          </li>
        ))}
      </ol>
      <p>
        <Link to={`/runs/${executionId}`}>Open as a run</Link>
      </p>
    </section>
  );
}

function Totals({ chat: { messages } }: { chat: ChatResponse }) {
  const used = messages.flatMap(({ usage }) => usage ?? []);
  const tokens = used.reduce((sum, { totalTokens }) => sum + totalTokens, 0);
  const costs = used.flatMap(({ costUsd }) => costUsd ?? []);
  const branches = countBranches(messages);
  return (
    <dl className={styles.totals}>
      <dt>Messages</dt>
      <dd>
        {formatCount(messages.length)}
        {branches > 1 && `, ${formatAmount(branches, "branch", "branches")}`}
      </dd>
      <dt>Tokens</dt>
      <dd>{formatCount(tokens)}</dd>
      {costs.length > 0 && (
        <>
          <dt>Cost</dt>
          <dd>{formatUsd(costs.reduce((sum: number, cost) => sum + Number(cost), 0))}</dd>
        </>
      )}
    </dl>
  );
}
