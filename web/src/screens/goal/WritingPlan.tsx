import { useEffect, useState } from "react";
import { GoalHeading, useModelName } from "@/screens/goal/GoalHeading";
import styles from "@/screens/goal/GoalScreen.module.css";
import { useGoalDraft } from "@/screens/goal/goalDraft";
import { PlanPanel } from "@/screens/goal/PlanPanel";
import { PlanProblems } from "@/screens/goal/PlanProblems";
import { type PlanWriting, stopPlan } from "@/screens/goal/planWriting";
import { useEditByHand } from "@/screens/goal/useEditByHand";
import { announce } from "@/ui/announcer";
import { Button } from "@/ui/Button";
import { formatAmount, formatDuration } from "@/ui/format";
import { usePageTitle } from "@/ui/pageTitle";
import { Status } from "@/ui/Status";
import { Switch } from "@/ui/Switch";

const NOTHING_TROUBLED: ReadonlySet<string> = new Set();
const UNKNOWN = ["Model calls", "Tokens", "Cost", "Longest path"].map((label) => ({
  label,
  value: "–",
}));

/** The plan while the model writes it: each step appears once it is complete. */
export function WritingPlan({ writing }: { writing: PlanWriting }) {
  const { steps, edges, text, repair, names } = writing;
  const { runWhenWritten, change } = useGoalDraft();
  usePageTitle("Writing the plan");
  const edit = useEditByHand(writing);
  const tries = repair?.attempt;
  useEffect(() => {
    announce(tries ? "The plan has errors and is written again" : "The plan is being written");
  }, [tries]);
  return (
    <div className={styles.page}>
      <div className={`${styles.column} ${styles.wide}`}>
        <GoalHeading goal={writing.request.prompt} model={useModelName(writing.request)} />
        <PlanPanel
          view={{ steps, edges, json: text }}
          isWriting
          troubled={NOTHING_TROUBLED}
          state={
            <>
              {repair ? (
                <Status status="retrying">Repairing the plan</Status>
              ) : (
                <Status status="running">Writing the plan</Status>
              )}
              <Progress writing={writing} />
            </>
          }
          choices={
            <Switch
              label="Run when it is written"
              checked={runWhenWritten}
              onChange={(checked) => change({ runWhenWritten: checked })}
            />
          }
          controls={
            <>
              <Button
                small
                icon="edit"
                onClick={edit}
                disabledReason={steps.length === 0 ? "Once there is a step" : undefined}
              >
                Edit by hand
              </Button>
              <Button small icon="stop" onClick={stopPlan}>
                Stop writing
              </Button>
            </>
          }
          stats={[{ label: "Steps", value: String(steps.length) }, ...UNKNOWN]}
          actions={
            <Button kind="primary" keys="Ctrl ↵" disabledReason="Once the plan is written">
              Run
            </Button>
          }
        />
        {repair && (
          <PlanProblems
            findings={repair.diagnostics}
            names={names}
            lead="The try before had these problems; the model mends them now."
          />
        )}
      </div>
    </div>
  );
}

const TICK_MS = 200;

function Progress({ writing }: { writing: PlanWriting }) {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), TICK_MS);
    return () => clearInterval(timer);
  }, []);
  const { steps, reasoning, startedAt, repair } = writing;
  const thinks = steps.length === 0 && writing.text === "" && reasoning !== "";
  return (
    <span>
      {repair && `try ${repair.attempt}, `}
      {thinks ? "thinking" : `${formatAmount(steps.length, "step")} so far`},{" "}
      {formatDuration((now - startedAt) / 1000)}
    </span>
  );
}
