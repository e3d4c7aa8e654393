import { memo, type ReactNode, useMemo, useState } from "react";
import { FindStep } from "@/canvas/FindStep";
import type { RunState } from "@/stream/runState";
import { Button } from "@/ui/Button";
import { Note } from "@/ui/Note";
import { SearchField } from "@/ui/SearchField";
import { Segmented } from "@/ui/Segmented";
import { useStoredState } from "@/ui/useStoredState";
import styles from "./BottomPanel.module.css";
import type { Folding } from "./folding";
import { LogView } from "./LogView";
import { logLines } from "./logLines";
import { planRequestOf } from "./PlanApproval";
import { ChangesDialog } from "./PlanChanges";
import type { PlanMoment } from "./planMoments";
import { elapsedSeconds } from "./runSummary";
import { StepTable } from "./StepTable";
import { Timeline } from "./Timeline";
import { changeMarks, presentOf, timelineRows } from "./timelineRows";
import { useEarlierTimes } from "./useEarlierTimes";

export type RunView = "steps" | "timeline" | "log" | "table" | "result";

type BottomPanelProps = Folding & {
  run: RunState;
  now: number;
  selectedPath: string | null;
  onSelect: (path: string) => void;
  /** The change of the plan that is shown, if one is. */
  moment: PlanMoment;
  onMoment: (moment: PlanMoment) => void;
  /** The steps by wave, where there is no room for them above. */
  steps?: ReactNode;
  /** The run's own panel, where it has no place of its own. */
  result?: ReactNode;
};

/** The run as timeline, log or table; on a phone as its steps too. */
export const BottomPanel = memo(function BottomPanel(props: BottomPanelProps) {
  const { run, steps, result } = props;
  const [wide, setWide] = useStoredState<RunView>("run.view", "timeline");
  const [narrow, setNarrow] = useStoredState<RunView>("run.phone", "steps");
  const [view, setView] = steps ? [narrow, setNarrow] : [wide, setWide];
  const [squeeze, setSqueeze] = useStoredState<boolean>("run.squeeze", true);
  const [words, setWords] = useState("");
  const options: { value: RunView; label: string; count?: number }[] = [
    ...(steps ? [{ value: "steps" as const, label: "Steps" }] : []),
    { value: "timeline", label: "Timeline" },
    { value: "log", label: "Log", count: logLines(run).length },
    { value: "table", label: "Table" },
    ...(result ? [{ value: "result" as const, label: "Result" }] : []),
  ];
  return (
    <section className={styles.panel} aria-label="What ran when">
      <header className={styles.head}>
        <div className={styles.views}>
          <Segmented label="Show the run as" value={view} options={options} onChange={setView} />
        </div>
        <span className={styles.space} />
        {view === "timeline" && (
          <>
            <Key />
            <Button small kind="quiet" aria-pressed={squeeze} onClick={() => setSqueeze(!squeeze)}>
              Squeeze idle
            </Button>
          </>
        )}
        {view === "log" && (
          <SearchField label="Words of the log" value={words} onChange={setWords} />
        )}
        {!steps && run.graph && <FindStep graph={run.graph} onFind={props.onSelect} />}
      </header>
      <div className={styles.body} data-scroller>
        {result && view !== "result" && planRequestOf(run) && (
          <div className={styles.asks}>
            <Note kind="warning">
              This run waits for your answer.{" "}
              <Button small onClick={() => setView("result")}>
                Answer
              </Button>
            </Note>
          </div>
        )}
        {view === "steps" && steps}
        {view === "timeline" && <TimelineView {...props} squeeze={squeeze} />}
        {view === "log" && <RunLog {...props} words={words} />}
        {view === "table" && <StepTable {...props} />}
        {view === "result" && result}
      </div>
    </section>
  );
});

function RunLog({ run, words, selectedPath, onSelect }: BottomPanelProps & { words: string }) {
  const entries = useMemo(() => logLines(run), [run]);
  return (
    <LogView
      entries={entries}
      nameOf={(path) => run.nodes.get(path)?.name ?? path}
      {...{ words, selectedPath, onSelect }}
    />
  );
}

function TimelineView(props: BottomPanelProps & { squeeze: boolean }) {
  const { run, folds, now: clock, ...choice } = props;
  const now = presentOf(run, clock);
  const earlier = useEarlierTimes(run);
  const changes = useMemo(() => changeMarks(run), [run]);
  const [isTold, setTold] = useState(false);
  return (
    <>
      <Timeline
        rows={timelineRows(run, folds, now, earlier)}
        changes={changes}
        now={run.endedAt ? null : elapsedSeconds(run, now)}
        onRefusal={() => setTold(true)}
        {...choice}
      />
      <ChangesDialog run={run} open={isTold} onClose={() => setTold(false)} />
    </>
  );
}

function Key() {
  return (
    <span className={styles.key} aria-hidden="true">
      <span>
        <i className={styles.queue} />
        queue
      </span>
      <span>
        <i className={styles.work} />
        work
      </span>
      <span>
        <i className={styles.critical} />
        longest path
      </span>
    </span>
  );
}
