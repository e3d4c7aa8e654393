import { Fragment, useMemo, useState } from "react";
import { Link, useNavigate } from "react-router";
import { useDeletePlan, useExecute } from "@/api/mutations";
import { usePlan, useProviders } from "@/api/queries";
import type { PlanResponse } from "@/api/types";
import { ErrorNote } from "@/screens/ErrorNote";
import { GoalHeading } from "@/screens/goal/GoalHeading";
import styles from "@/screens/goal/GoalScreen.module.css";
import { executeRequest, useGoalDraft } from "@/screens/goal/goalDraft";
import { PlanPanel } from "@/screens/goal/PlanPanel";
import { PlanProblems } from "@/screens/goal/PlanProblems";
import { PlanAnswers, PlanQuestions } from "@/screens/goal/PlanQuestions";
import { forecastStats, readForecast, troubledSteps, viewOfPlan } from "@/screens/goal/planView";
import { usePlanWriting } from "@/screens/goal/planWriting";
import { describeOptions, RunOptionsChip } from "@/screens/goal/RunOptionsChip";
import { useMakePlan } from "@/screens/goal/useMakePlan";
import { Button, ButtonLink } from "@/ui/Button";
import { formatAmount, formatMoment } from "@/ui/format";
import { usePageTitle } from "@/ui/pageTitle";
import { Skeleton } from "@/ui/Skeleton";
import { Status } from "@/ui/Status";
import { Switch } from "@/ui/Switch";
import { useShortcuts } from "@/ui/shortcuts";

/** A plan that is written and not run yet: look at it, then run it. */
export function WrittenPlan({ planId }: { planId: string }) {
  const plan = usePlan(planId);
  usePageTitle(plan.data?.title ?? "Plan");
  return (
    <div className={styles.page}>
      <div className={`${styles.column} ${styles.wide}`}>
        {plan.data ? (
          <Plan key={planId} plan={plan.data} />
        ) : (
          <div className={styles.asked}>
            <h1>Plan</h1>
            {plan.error ? (
              <>
                <ErrorNote error={plan.error} />
                <div className={styles.buttons}>
                  <ButtonLink to="/">New goal</ButtonLink>
                </div>
              </>
            ) : (
              <Skeleton lines={4} label="The plan is being loaded" />
            )}
          </div>
        )}
      </div>
    </div>
  );
}

function useRun(planId: string) {
  const navigate = useNavigate();
  const execute = useExecute();
  const run = () => {
    if (execute.isPending) return;
    execute.mutate(executeRequest(planId), {
      onSuccess: (made) => navigate(`/runs/${made.execution_id}`),
    });
  };
  return { run, isStarting: execute.isPending, error: execute.error };
}

/** The plan; first what the goal leaves open, where it has just been written under assumed answers. */
function Plan({ plan }: { plan: PlanResponse }) {
  const navigate = useNavigate();
  const makePlan = useMakePlan();
  const remove = useDeletePlan();
  const [isAsking, setAsking] = useState(() => usePlanWriting.getState().asking === plan.plan_id);
  const heading = (
    <GoalHeading
      goal={plan.user_prompt}
      asked={
        <>
          Asked {formatMoment(new Date(plan.created_at))}
          {plan.examples?.map((example) => (
            <Fragment key={example.plan_id}>
              {" · after "}
              <Link className={styles.link} to={`/plans/${example.plan_id}`}>
                {example.title}
              </Link>
            </Fragment>
          ))}
        </>
      }
      model={plan.model}
    />
  );
  const answer = async (answers: Record<string, string>) => {
    const { user_prompt: prompt, provider, model } = plan;
    const wasSeen = usePlanWriting.getState().asking !== plan.plan_id;
    navigate("/");
    const written = await makePlan({ prompt, provider, model, answers });
    if (written && !wasSeen) remove.mutate({ planId: plan.plan_id, force: false });
  };
  const take = () => {
    usePlanWriting.setState({ asking: null });
    setAsking(false);
  };
  if (isAsking) {
    return (
      <>
        {heading}
        <PlanQuestions questions={plan.questions} onTake={take} onAnswer={answer} />
      </>
    );
  }
  return (
    <>
      {heading}
      {plan.questions.length > 0 && (
        <PlanAnswers questions={plan.questions} onChange={() => setAsking(true)} />
      )}
      <PlanToRun plan={plan} />
    </>
  );
}

function PlanToRun({ plan }: { plan: PlanResponse }) {
  const view = useMemo(() => viewOfPlan(plan), [plan]);
  const { options, approveFirst, change } = useGoalDraft();
  const { run, isStarting, error } = useRun(plan.plan_id);
  const blocked = whyNotRun(plan);
  const troubled = useMemo(() => troubledSteps(plan.diagnostics), [plan]);
  const names = useMemo(() => new Map(view.steps.map(({ id, name }) => [id, name])), [view]);
  useShortcuts("This plan", [
    { keys: "mod+enter", does: "Run the plan", run: () => !blocked && run() },
  ]);
  return (
    <>
      <PlanPanel
        view={view}
        isWriting={false}
        troubled={troubled}
        state={
          <>
            {blocked ? <Status status="draft" /> : <Status status="completed">Written</Status>}
            <span>{formatAmount(plan.nodes.length, "step")}</span>
          </>
        }
        controls={
          <RunOptionsChip options={options} onChange={(next) => change({ options: next })} />
        }
        stats={useStats(plan)}
        actions={
          <>
            <Switch
              label="Approve first"
              checked={approveFirst}
              onChange={(checked) => change({ approveFirst: checked })}
            />
            <ButtonLink to={`/plans/${plan.plan_id}`} icon="edit">
              Edit first
            </ButtonLink>
            <Button
              kind="primary"
              keys="Ctrl ↵"
              onClick={run}
              disabledReason={blocked ?? (isStarting ? "Starting" : undefined)}
              aria-description={describeOptions(options) || undefined}
            >
              Run
            </Button>
          </>
        }
      />
      <div className={styles.notes}>{error && <ErrorNote error={error} />}</div>
      <PlanProblems findings={plan.diagnostics} names={names} fixes={plan.fixes} />
    </>
  );
}

/** A plan with errors is a draft, as the editor may leave it. */
function whyNotRun({ diagnostics }: PlanResponse): string | undefined {
  const errors = diagnostics.filter(({ severity }) => severity === "error").length;
  return errors > 0 ? `Fix ${formatAmount(errors, "error")} to run` : undefined;
}

function useStats(plan: PlanResponse) {
  const forecast = readForecast(plan.forecast);
  const providers = useProviders();
  if (!forecast) return [{ label: "Steps", value: String(plan.nodes.length) }];
  const used = providers.data?.details.find(({ name }) => name === plan.provider);
  return forecastStats(forecast, used?.kind === "local");
}
