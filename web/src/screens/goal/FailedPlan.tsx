import { useMemo } from "react";
import type { ApiError } from "@/api/http";
import { ErrorNote } from "@/screens/ErrorNote";
import { GoalHeading, useModelName } from "@/screens/goal/GoalHeading";
import styles from "@/screens/goal/GoalScreen.module.css";
import { PlanPanel } from "@/screens/goal/PlanPanel";
import { PlanProblems } from "@/screens/goal/PlanProblems";
import type { PlanWriting } from "@/screens/goal/planWriting";
import { useEditByHand } from "@/screens/goal/useEditByHand";
import { useMakePlan } from "@/screens/goal/useMakePlan";
import { Button, ButtonLink } from "@/ui/Button";
import { usePageTitle } from "@/ui/pageTitle";
import { Status } from "@/ui/Status";

const MOST_ISSUES = 20;

/** Planning failed: the error, the steps written so far, every problem, and the ways out. */
export function FailedPlan({ writing, error }: { writing: PlanWriting; error: ApiError }) {
  const makePlan = useMakePlan();
  const { request, steps, edges, text, names } = writing;
  usePageTitle("No plan");
  const findings = error.issues.slice(0, MOST_ISSUES);
  const troubled = useMemo(() => new Set(error.issues.flatMap(({ node }) => node ?? [])), [error]);
  const edit = useEditByHand(writing);
  const actions = (
    <>
      {steps.length > 0 && (
        <Button icon="edit" onClick={edit}>
          Edit by hand
        </Button>
      )}
      <ButtonLink to="/settings">Look at the models</ButtonLink>
      <Button kind="primary" icon="retry" onClick={() => makePlan(request)}>
        Try again
      </Button>
    </>
  );
  return (
    <div className={styles.page}>
      <div className={`${styles.column} ${styles.wide}`}>
        <GoalHeading goal={request.prompt} model={useModelName(request)} />
        <div className={styles.above}>
          <ErrorNote error={error} />
        </div>
        {steps.length > 0 ? (
          <PlanPanel
            view={{ steps, edges, json: text }}
            isWriting={false}
            troubled={troubled}
            state={<Status status="failed">Not a plan that can run</Status>}
            stats={[{ label: "Steps", value: String(steps.length) }]}
            actions={actions}
          />
        ) : (
          <div className={styles.buttons}>{actions}</div>
        )}
        <PlanProblems findings={findings} names={names} />
      </div>
    </div>
  );
}
