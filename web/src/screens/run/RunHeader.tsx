import { type ReactNode, useState } from "react";
import { costWithPlanning, waitsForWords } from "@/api/executionSummary";
import { useLabel } from "@/api/mutations";
import { useExecution, useResult } from "@/api/queries";
import { showError } from "@/api/showError";
import { WaveGlyph } from "@/canvas/WaveGlyph";
import type { JsonNumber } from "@/json";
import { LabelDialog } from "@/screens/runs/LabelDialog";
import { type BudgetLine, budgetLines, warningWords } from "@/stream/budget";
import type { RunState } from "@/stream/runState";
import { tokenWords } from "@/stream/usage";
import {
  formatAmount,
  formatCount,
  formatDuration,
  formatMoment,
  formatTime,
  formatUsd,
  LIMIT_NAMES,
  usedWords,
} from "@/ui/format";
import { IconButton } from "@/ui/IconButton";
import { Icon } from "@/ui/icons";
import { Status } from "@/ui/Status";
import { Tag, Tags } from "@/ui/Tag";
import { Lineage, RunSource } from "./Lineage";
import { PlanChanges } from "./PlanChanges";
import styles from "./RunHeader.module.css";
import {
  changeWords,
  countStatuses,
  elapsedSeconds,
  savedSeconds,
  statusesByWave,
  statusWords,
} from "./runSummary";
import { useWaitsFor } from "./useWaitsFor";

type RunHeaderProps = {
  run: RunState;
  /** Its status says that it runs, and nobody runs it. */
  isInterrupted: boolean;
  /** In ms since 1970. */
  now: number;
  /** The buttons of the run. */
  actions: ReactNode;
};

/** What a run is and how far it has come, in two rows. */
export function RunHeader({ run, isInterrupted, now, actions }: RunHeaderProps) {
  const waits = useWaitsFor(run);
  const outcome = useResult(run.executionId, run.status === "failed").data?.outcome;
  const words = isInterrupted || waits ? undefined : statusWords(run);
  const stands = waits ? waitsForWords(waits) : changeWords(run);
  return (
    <header className={styles.header}>
      <span className={styles.glyph}>
        <WaveGlyph waves={statusesByWave(run)} size="header" />
      </span>
      <div className={styles.title}>
        <Status
          status={isInterrupted ? "interrupted" : waits ? "waiting" : (outcome ?? run.status)}
          pill
        >
          {words}
        </Status>
        <RunName run={run} />
        <div className={styles.actions}>{actions}</div>
      </div>
      <div className={styles.facts}>
        {stands && !isInterrupted && <span className={styles.waits}>{stands}</span>}
        <Counts run={run} />
        <Facts run={run} now={now} />
      </div>
      <Lineage run={run} />
    </header>
  );
}

function Counts({ run }: { run: RunState }) {
  return (
    <span className={styles.counts}>
      {countStatuses(run).map(({ status, count }) => (
        <Status key={status} status={status}>
          {count} {status.replace("_", " ")}
        </Status>
      ))}
    </span>
  );
}

function Facts({ run, now }: { run: RunState; now: number }) {
  const { input_tokens, output_tokens, calls, cost_usd, cache_read_tokens: cached = 0 } = run.usage;
  const saved = run.endedAt ? savedSeconds(run) : 0;
  const budget = budgetLines(run, now);
  const started = run.startedAt ?? run.createdAt;
  return (
    <>
      <span>
        <b>{formatDuration(elapsedSeconds(run, now))}</b>
        {run.endedAt ? ` in ${formatAmount(run.waves.length, "wave")}` : " elapsed"}
      </span>
      {calls > 0 && (
        <span title={tokenWords(run.usage)}>
          {formatAmount(input_tokens + output_tokens, "token")}
          {cached > 0 && ` (of which ${formatCount(cached)} from the cache)`}
        </span>
      )}
      <Cost own={calls > 0 ? cost_usd : null} executionId={run.executionId} />
      {budget.length > 0 && (calls > 0 || run.warned.length > 0) && <Budget lines={budget} />}
      {run.recoveries > 0 && <span>{recoveryWords(run.recoveries)}</span>}
      {saved >= 1 && <span>side by side saved {formatDuration(saved)}</span>}
      <RunSource run={run} />
      <PlanChanges run={run} />
      <TraceLink executionId={run.executionId} />
      {started && <span className={styles.started}>started {startWords(new Date(started))}</span>}
    </>
  );
}

/** The name of the run, which can be changed, and its star. */
function RunName({ run }: { run: RunState }) {
  const [isOpen, setOpen] = useState(false);
  const label = useLabel();
  const { data } = useExecution(run.executionId);
  const title = run.title || run.goal || "A run";
  const { executionId } = run;
  return (
    <>
      <h1 title={run.goal}>{data?.name || title}</h1>
      {data && (
        <>
          <IconButton
            icon={data.starred ? "starred" : "star"}
            label={data.starred ? "Take the star away" : "Star this run"}
            aria-pressed={data.starred}
            small
            onClick={() =>
              label.mutate(
                { executionId, labels: { starred: !data.starred } },
                { onError: showError },
              )
            }
          />
          <IconButton icon="edit" label="Name, tags and note" small onClick={() => setOpen(true)} />
          <Tags className={styles.tags} title={data.tags.join(", ")}>
            {data.tags.map((tag) => (
              <Tag key={tag}>{tag}</Tag>
            ))}
          </Tags>
          <LabelDialog run={isOpen ? { ...data, title } : null} onClose={() => setOpen(false)} />
        </>
      )}
    </>
  );
}

/** What the run cost, with what its plan did. */
function Cost({ own, executionId }: { own: JsonNumber | null; executionId: string }) {
  const planning = useExecution(executionId).data?.planning;
  const total = costWithPlanning(own, planning);
  if (total === null) return null;
  if (planning?.cost_usd == null) return <span>{formatUsd(total)}</span>;
  return (
    <span title={`${own === null ? "–" : formatUsd(own)} for the run`}>
      {formatUsd(total)}
      {Number(total) < LEAST_TOLD_APART
        ? " with planning"
        : `, of which ${formatUsd(planning.cost_usd)} planning`}
    </span>
  );
}

/** Of less, both amounts would read the same. */
const LEAST_TOLD_APART = 0.0001;

/** Where the operator has named a page of traces, and the run has one. */
function TraceLink({ executionId }: { executionId: string }) {
  const url = useExecution(executionId).data?.trace_url;
  if (!url) return null;
  return (
    <a className={styles.trace} href={url} target="_blank" rel="noreferrer noopener">
      trace
    </a>
  );
}

/** The amount of the budget that is the nearest to its limit; all of them are in the tab Cost. */
function Budget({ lines }: { lines: readonly BudgetLine[] }) {
  const [first] = lines;
  if (first === undefined) return null;
  const words = ({ name, used, most }: BudgetLine) => usedWords(name, used, most);
  const all = lines.map((line) => `${LIMIT_NAMES[line.name] ?? line.name}: ${words(line)}`);
  return (
    <span className={styles.budget} data-warned={first.isWarned} title={all.join("\n")}>
      {first.isWarned && <Icon name="warning" small />}
      budget {words(first)}
      {warningWords(first)}
    </span>
  );
}

function recoveryWords(recoveries: number) {
  const times = recoveries > 1 ? `, ${formatAmount(recoveries, "time")}` : "";
  return `went on in another process${times}`;
}

function startWords(time: Date): string {
  const moment = formatMoment(time);
  return moment === formatTime(time) ? formatTime(time, true) : `${moment}, ${formatTime(time)}`;
}
