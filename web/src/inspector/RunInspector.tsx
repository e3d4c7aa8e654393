import { type ReactNode, useState } from "react";
import { costWithPlanning, tokensOf } from "@/api/executionSummary";
import { call } from "@/api/http";
import { useDocument, useExecution, useNode, useResult } from "@/api/queries";
import { showError } from "@/api/showError";
import { type JsonNumber, writeJson } from "@/json";
import { budgetLines } from "@/stream/budget";
import { withNames } from "@/stream/names";
import type { NodeState, RunError, RunState } from "@/stream/runState";
import { isCostUnknown, tokenWords } from "@/stream/usage";
import { Button } from "@/ui/Button";
import { copyText } from "@/ui/copyText";
import { formatAmount, formatCount, formatUsd } from "@/ui/format";
import { Note } from "@/ui/Note";
import { principalWords } from "@/ui/principalWords";
import { nameOfFile, saveFile, saveJsonFile } from "@/ui/saveFile";
import { TabPanel, Tabs } from "@/ui/Tabs";
import { useNow } from "@/ui/useNow";
import { BudgetMeters } from "./BudgetMeters";
import { FailureBox } from "./FailureBox";
import { Loaded } from "./Loaded";
import { MissingResults } from "./MissingResults";
import parts from "./parts.module.css";
import { openQuestions } from "./requestFields";
import { SelectableWords } from "./SelectableWords";
import styles from "./StepInspector.module.css";
import { Text } from "./Text";

export type RunTab = "result" | "goal" | "cost" | "json";

type RunInspectorProps = {
  run: RunState;
  /** What the run asks before its first step, above its tabs. */
  request?: ReactNode;
  tab: RunTab;
  onTab: (tab: RunTab) => void;
  onSelect: (path: string) => void;
  /** Shows the result over the whole width. */
  onRead: () => void;
  /** What can be done with words that are selected in the goal; without a selection they are empty. */
  onWords?: ((words: string) => ReactNode) | undefined;
};

const TABS: readonly { value: RunTab; label: string }[] = [
  { value: "result", label: "Result" },
  { value: "goal", label: "Goal" },
  { value: "cost", label: "Cost" },
  { value: "json", label: "JSON" },
];

/** The run itself: its result, its goal, its cost. */
export function RunInspector(props: RunInspectorProps) {
  const { run, request, tab, onTab, onSelect, onRead, onWords } = props;
  return (
    <aside className={styles.inspector} aria-label="The run" tabIndex={-1}>
      <header className={styles.head}>
        <div className={styles.title}>
          <h2>{TABS.find((each) => each.value === tab)?.label}</h2>
          {tab === "result" && <ResultButtons run={run} onRead={onRead} />}
          {tab === "json" && <DocumentButtons executionId={run.executionId} />}
        </div>
      </header>
      {request && <div className={styles.request}>{request}</div>}
      <Tabs
        label="Parts of the run"
        value={tab}
        tabs={TABS}
        onChange={onTab}
        className={styles.tabs}
      >
        <Panel value="result">
          <Result run={run} onSelect={onSelect} />
        </Panel>
        <Panel value="goal">
          <Goal run={run} onWords={onWords} />
          {run.createdBy && (
            <p className={parts.quiet}>Created by {principalWords(run.createdBy)}.</p>
          )}
        </Panel>
        <Panel value="cost">
          <Cost run={run} onSelect={onSelect} />
        </Panel>
        <Panel value="json">
          <StoredJson run={run} />
        </Panel>
      </Tabs>
      <footer className={styles.foot}>Choose a step to see its input, prompt and output.</footer>
    </aside>
  );
}

/** The goal, with what can be done with words of it. */
function Goal({ run, onWords }: Pick<RunInspectorProps, "run" | "onWords">) {
  if (!run.goal) return <p className={parts.quiet}>This run was started without a goal.</p>;
  if (!onWords) return <Text text={run.goal} />;
  return (
    <SelectableWords action={onWords}>
      <Text text={run.goal} />
    </SelectableWords>
  );
}

function Panel({ value, children }: { value: RunTab; children: ReactNode }) {
  return (
    <TabPanel value={value} className={styles.panel}>
      {children}
    </TabPanel>
  );
}

type ResultProps = {
  run: RunState;
  onSelect: (path: string) => void;
};

function Result({ run, onSelect }: ResultProps) {
  const result = useResult(run.executionId, run.endedAt !== null);
  if (run.status === "cancelled") return <p className={parts.quiet}>Cancelled. {run.cause}</p>;
  if (!run.endedAt) return <Unfinished run={run} onSelect={onSelect} />;
  const failure = run.error && <Failure run={run} error={run.error} onSelect={onSelect} />;
  const isPartial = result.data?.outcome === "partial";
  return (
    <>
      {!isPartial && failure}
      <Loaded query={result} label="Loading the result">
        {({ result: { nodes }, node_results, missing }) => (
          <>
            {!run.error && nodes.length === 0 && (
              <p className={parts.quiet}>The run gave nothing.</p>
            )}
            {nodes.map((id) => (
              <NodeResult
                key={id}
                id={id}
                node={run.nodes.get(id)}
                text={node_results[id] ?? ""}
                onSelect={onSelect}
              />
            ))}
            {isPartial && <MissingResults run={run} missing={missing} onSelect={onSelect} />}
          </>
        )}
      </Loaded>
      {isPartial && failure}
    </>
  );
}

type NodeResultProps = Pick<ResultProps, "onSelect"> & {
  id: string;
  node: NodeState | undefined;
  text: string;
};

/** What one of the last steps delivered. */
function NodeResult({ id, node, text, onSelect }: NodeResultProps) {
  return (
    <section className={parts.result}>
      <p className={parts.facts}>
        <span>
          from{" "}
          <button type="button" onClick={() => onSelect(id)}>
            {node?.name ?? id}
          </button>
        </span>
        {node && tokensOf(node.usage) > 0 && (
          <span>{formatAmount(tokensOf(node.usage), "token")}</span>
        )}
      </p>
      <Text text={text} />
    </section>
  );
}

type FailureProps = Pick<ResultProps, "run" | "onSelect"> & { error: RunError };

/** Why the run failed, and the steps that did. */
function Failure({ run, error, onSelect }: FailureProps) {
  const failed = run.nodes.get(error.node ?? "");
  const step = useNode(run.executionId, failed?.path ?? "", failed !== undefined);
  return (
    <div className={parts.notes}>
      <FailureBox
        error={{ ...error, message: withNames(run.nodes, error.message) }}
        where={failed ?? null}
        traceback={step.data?.traceback}
      >
        {run.failures.map((path) => (
          <Button key={path} small onClick={() => onSelect(path)}>
            Show {run.nodes.get(path)?.name ?? path}
          </Button>
        ))}
      </FailureBox>
    </div>
  );
}

/** What a run that has not ended waits for: the questions of its steps, each a step to open. */
function Unfinished({ run, onSelect }: Pick<RunInspectorProps, "run" | "onSelect">) {
  const questions = openQuestions(run);
  if (questions.length === 0) {
    return <p className={parts.quiet}>The result comes here when the run is done.</p>;
  }
  return (
    <div className={parts.notes}>
      {[...countByPath(questions)].map(([path, count]) => (
        <Note key={path} kind="warning">
          {run.nodes.get(path)?.name ?? path} waits for{" "}
          {count === 1 ? "your answer" : `${count} answers of yours`}.{" "}
          <Button small onClick={() => onSelect(path)}>
            Answer
          </Button>
        </Note>
      ))}
    </div>
  );
}

/** How many questions each step asks: an agent may ask about several calls. */
function countByPath(questions: readonly { path: string }[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { path } of questions) counts.set(path, (counts.get(path) ?? 0) + 1);
  return counts;
}

function ResultButtons({ run, onRead }: Pick<RunInspectorProps, "run" | "onRead">) {
  const { data } = useResult(run.executionId, run.endedAt !== null);
  if (!data || data.result.nodes.length === 0) return null;
  const words = data.result.nodes.map((id) => data.node_results[id] ?? "").join("\n\n");
  return (
    <>
      <Button small icon="text" onClick={onRead}>
        Read
      </Button>
      <Button small icon="copy" onClick={() => void copyText(words)}>
        Copy
      </Button>
      <Button
        small
        icon="download"
        onClick={() => saveFile(words, `${nameOfFile(run.title)}.md`, "text/markdown")}
      >
        Download
      </Button>
    </>
  );
}

function Cost({ run, onSelect }: Pick<RunInspectorProps, "run" | "onSelect">) {
  const { usage } = run;
  const planning = useExecution(run.executionId).data?.planning;
  const now = useNow(run.status === "executing");
  const nodes = [...run.nodes.values(), ...run.changes.flatMap(({ dropped }) => dropped)];
  const paid = nodes.filter((node) => node.usage.calls > 0);
  const cutOff = nodes.filter(isCostUnknown);
  return (
    <>
      <dl className={parts.pairs}>
        <dt>Model calls</dt>
        <dd>{formatCount(usage.calls)}</dd>
        <dt>Tokens</dt>
        <dd>{tokenWords(usage)}</dd>
        <dt>Cost</dt>
        <dd>
          {costWords(usage.cost_usd, usage.estimated)}
          {cutOff.length > 0 && ", and what was cut off: not known"}
        </dd>
        {planning && (
          <>
            <dt>Planning</dt>
            <dd>
              {costWords(planning.cost_usd, planning.estimated)},{" "}
              {formatAmount(tokensOf(planning), "token")} in {formatAmount(planning.calls, "call")}:
              paid once for all runs of the plan
            </dd>
            <dt>In all</dt>
            <dd>
              {costWords(
                costWithPlanning(usage.cost_usd, planning),
                usage.estimated || planning.estimated,
              )}
            </dd>
          </>
        )}
      </dl>
      <BudgetMeters lines={budgetLines(run, now)} />
      <ol className={parts.course} aria-label="Cost by step">
        {paid.map((node) => (
          <li key={node.path}>
            <span>{formatAmount(node.usage.calls, "call")}</span>
            <StepName {...{ run, node, onSelect }} />
            <span>
              {formatAmount(node.usage.input_tokens + node.usage.output_tokens, "token")},{" "}
              {costWords(node.usage.cost_usd, node.usage.estimated)}
            </span>
          </li>
        ))}
        {cutOff.map((node) => (
          <li key={node.path}>
            <span>cut off</span>
            <StepName {...{ run, node, onSelect }} />
            <span>not known</span>
          </li>
        ))}
      </ol>
    </>
  );
}

/** A way to a step; one that a change of the plan dropped is only named. */
function StepName(props: Pick<RunInspectorProps, "run" | "onSelect"> & { node: NodeState }) {
  const { run, node, onSelect } = props;
  if (!run.nodes.has(node.path)) return <span>{node.name}, dropped</span>;
  return (
    <button type="button" onClick={() => onSelect(node.path)}>
      {node.name}
    </button>
  );
}

function costWords(usd: JsonNumber | null, isEstimated: boolean): string {
  if (usd === null) return "–";
  return Number(usd) > 0 && isEstimated ? `about ${formatUsd(usd)}` : formatUsd(usd);
}

/** A document of at most so many events is loaded as soon as its tab is opened. */
const MODEST_EVENTS = 2_000;

/** The whole document: one that is large only when that is asked for. */
function StoredJson({ run }: { run: RunState }) {
  const [isOpen, setOpen] = useState(run.lastSeq <= MODEST_EVENTS);
  const document = useDocument(run.executionId, isOpen);
  if (!isOpen) {
    return (
      <>
        <p className={parts.quiet}>
          This run has {formatCount(run.lastSeq)} events; its document may be large.
        </p>
        <Button onClick={() => setOpen(true)}>Load the whole document</Button>
      </>
    );
  }
  return (
    <Loaded query={document} label="Loading the document">
      {(data) => <Text text={writeJson(data, 2)} />}
    </Loaded>
  );
}

/** Copies or saves the whole document as it can be handed on: without what only the operator sees. */
function DocumentButtons({ executionId }: { executionId: string }) {
  const withText = async (use: (text: string) => unknown) => {
    try {
      const document = await call("getDocument", {
        path: { execution_id: executionId },
        query: { public: true },
      });
      await use(writeJson(document, 2));
    } catch (error) {
      showError(error);
    }
  };
  return (
    <>
      <Button small icon="copy" onClick={() => void withText(copyText)}>
        Copy
      </Button>
      <Button
        small
        icon="download"
        onClick={() => void withText((text) => saveJsonFile(text, executionId))}
      >
        Download
      </Button>
    </>
  );
}
