import type { ReactNode } from "react";
import { useNavigate } from "react-router";
import { useProviders } from "@/api/queries";
import type { PlanRequest } from "@/api/types";
import styles from "@/screens/goal/GoalScreen.module.css";
import { useGoalDraft } from "@/screens/goal/goalDraft";
import { stopPlan } from "@/screens/goal/planWriting";
import { chosenModel, chosenProvider } from "@/screens/goal/providerChoice";

interface GoalHeadingProps {
  goal: string;
  /** Before the model: "Asked 13:28". */
  asked?: ReactNode;
  model?: string | null | undefined;
}

/** Returns the model that a request is answered by, the default one where it names none. */
export function useModelName({ provider = null, model = null }: PlanRequest): string {
  const details = useProviders().data?.details ?? [];
  const choice = { provider, model };
  return chosenModel(choice, chosenProvider(choice, details));
}

/** The goal over its plan; "Change the goal" leads back to the prompt. */
export function GoalHeading({ goal, asked = "Asked just now", model }: GoalHeadingProps) {
  const navigate = useNavigate();
  const change = useGoalDraft((draft) => draft.change);
  return (
    <header className={styles.asked}>
      <h1>{goal}</h1>
      <p>
        {asked} · {model && `${model} · `}
        <button
          type="button"
          className={styles.link}
          onClick={() => {
            change({ prompt: goal });
            stopPlan();
            navigate("/");
          }}
        >
          Change the goal
        </button>
      </p>
    </header>
  );
}
