import { useProviders } from "@/api/queries";
import type { ProviderDetails } from "@/api/types";
import { ErrorNote } from "@/screens/ErrorNote";
import { ExampleGoals } from "@/screens/goal/ExampleGoals";
import { GoalForm } from "@/screens/goal/GoalForm";
import styles from "@/screens/goal/GoalScreen.module.css";
import { useGoalDraft } from "@/screens/goal/goalDraft";
import { ModelPicker } from "@/screens/goal/ModelPicker";
import { RecentGoals } from "@/screens/goal/RecentGoals";
import { RunOptionsChip } from "@/screens/goal/RunOptionsChip";
import { Swell } from "@/screens/goal/Swell";
import { useMakePlan } from "@/screens/goal/useMakePlan";
import { Chip } from "@/ui/Chip";
import { Note } from "@/ui/Note";
import { usePageTitle } from "@/ui/pageTitle";
import { Switch } from "@/ui/Switch";

/** The question, the prompt, goals to try, and the last runs. */
export function NewGoal() {
  const { prompt, provider, model, options, approveFirst, change } = useGoalDraft();
  const providers = useProviders();
  const makePlan = useMakePlan();
  usePageTitle("New goal");
  const details = providers.data?.details ?? [];
  return (
    <div className={styles.page}>
      <Swell />
      <div className={styles.column}>
        <h1 className={styles.question}>What should get done?</h1>
        <GoalForm
          prompt={prompt}
          onChange={(next) => change({ prompt: next })}
          onSubmit={() => makePlan({ prompt: prompt.trim(), provider, model })}
        >
          {providers.data ? (
            <ModelPicker providers={details} choice={{ provider, model }} onChange={change} />
          ) : (
            <Chip>Model</Chip>
          )}
          <RunOptionsChip options={options} onChange={(next) => change({ options: next })} />
          <Switch
            label="Approve first"
            checked={approveFirst}
            onChange={(checked) => change({ approveFirst: checked })}
          />
        </GoalForm>
        <div className={styles.notes}>
          {providers.error && <ErrorNote error={providers.error} />}
          {providers.data?.providers.length === 0 && <NoModel providers={details} />}
        </div>
        <ExampleGoals onChoose={(goal) => change({ prompt: goal })} />
        <RecentGoals />
      </div>
    </div>
  );
}

function NoModel({ providers }: { providers: readonly ProviderDetails[] }) {
  if (providers.some(({ download }) => download)) {
    return <Note>The embedded model is on its way. A plan can be written once it is here.</Note>;
  }
  const ways = providers.map((provider) => provider.how_to_enable).filter(Boolean);
  return (
    <Note kind="warning">
      No model can be used yet, so no plan can be written. Where planwave serve runs:{" "}
      {ways.join(", or ")}.
    </Note>
  );
}
