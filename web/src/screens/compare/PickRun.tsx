import { errorText } from "@/api/errorText";
import { isEnded, secondsOf, statusesByWave, titleOf } from "@/api/executionSummary";
import { useExecution, useExecutions } from "@/api/queries";
import type { ExecutionSummary } from "@/api/types";
import { RunStatus } from "@/canvas/RunStatus";
import { RunTitle } from "@/canvas/RunTitle";
import { WaveGlyph } from "@/canvas/WaveGlyph";
import styles from "@/screens/compare/PickRun.module.css";
import { SideMark } from "@/screens/compare/SideMark";
import { tookWords } from "@/screens/runs/runWords";
import { ButtonLink } from "@/ui/Button";
import { EmptyState } from "@/ui/EmptyState";
import { formatMoment } from "@/ui/format";
import { Note } from "@/ui/Note";
import { Skeleton } from "@/ui/Skeleton";
import { useNow } from "@/ui/useNow";

const SHOWN = 20;

interface PickRunProps {
  /** The run that the other one is compared with. */
  a: string;
  onPick: (executionId: string) => void;
}

/** Asks which run the first one is compared with: those of the same plan first. */
export function PickRun({ a, onPick }: PickRunProps) {
  const first = useExecution(a);
  const recent = useExecutions({ limit: SHOWN });
  const planId = first.data?.plan_id ?? undefined;
  const related = useExecutions({ limit: SHOWN, plan_id: planId });
  const isOther = ({ execution_id }: ExecutionSummary) => execution_id !== a;
  const ofPlan = planId ? firstPage(related).filter(isOther) : [];
  const known = new Set(ofPlan.map(({ execution_id }) => execution_id));
  const others = firstPage(recent).filter((run) => isOther(run) && !known.has(run.execution_id));
  const error = first.error ?? recent.error;
  const isLoading = first.isPending || recent.isPending || related.isPending;
  return (
    <div className={styles.page}>
      <h1>Compare with which run</h1>
      {first.data && (
        <p className={styles.first}>
          <SideMark side="A" />
          <b>{titleOf(first.data)}</b>
          {first.data.created_at && formatMoment(new Date(first.data.created_at))}
        </p>
      )}
      {error && <Note kind="error">{errorText(error)}</Note>}
      {!error && isLoading && <Skeleton label="Loading the runs" lines={5} />}
      {!error && !isLoading && (
        <>
          <Choices title="Runs of the same plan" runs={ofPlan} onPick={onPick} />
          <Choices title="Other runs" runs={others} onPick={onPick} />
          {ofPlan.length + others.length === 0 && <OnlyOne a={a} />}
        </>
      )}
    </div>
  );
}

function firstPage({ data }: ReturnType<typeof useExecutions>): readonly ExecutionSummary[] {
  return data?.pages[0]?.executions ?? [];
}

function OnlyOne({ a }: { a: string }) {
  return (
    <EmptyState
      title="There is no other run."
      action={<ButtonLink to={`/runs/${a}`}>Open this run</ButtonLink>}
    >
      Run the plan again, or fork this run with a change.
    </EmptyState>
  );
}

interface ChoicesProps {
  title: string;
  runs: readonly ExecutionSummary[];
  onPick: (executionId: string) => void;
}

function Choices({ title, runs, onPick }: ChoicesProps) {
  if (runs.length === 0) return null;
  return (
    <section aria-label={title}>
      <h2 className={styles.title}>{title}</h2>
      <ul className={styles.list}>
        {runs.map((run) => (
          <li key={run.execution_id}>
            <button
              type="button"
              className={styles.choice}
              onClick={() => onPick(run.execution_id)}
            >
              <Choice run={run} />
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Choice({ run }: { run: ExecutionSummary }) {
  const seconds = secondsOf(run, useNow(!isEnded(run)));
  return (
    <>
      <span className={styles.glyph}>
        <WaveGlyph waves={statusesByWave(run.digest)} />
      </span>
      <RunTitle run={run} />
      <RunStatus run={run} />
      <span className={styles.number}>{formatMoment(new Date(run.created_at))}</span>
      <span className={styles.number}>{seconds !== null && tookWords(seconds, isEnded(run))}</span>
    </>
  );
}
