import type { OpenRequestResponse } from "@/api/types";
import { GIVE_RESULT } from "@/inspector/answerDraft";
import { actionLabel, readRequest } from "@/inspector/requestFields";
import { Button } from "@/ui/Button";

type RequestActionsProps = {
  request: OpenRequestResponse;
  /** Answers with an action; undefined while an answer is on its way. */
  onAnswer: ((action: string) => void) | undefined;
  /** Opens the step's panel. */
  onRead: () => void;
};

/** How many decisions fit on a card. */
const MOST_ACTIONS = 2;

/** The first decisions of a waiting step, on its card; everything else is in its panel. */
export function RequestActions({ request, onAnswer, onRead }: RequestActionsProps) {
  const { actions, form, kind } = readRequest(request);
  if (kind === "timer") return null;
  const shown = onAnswer && form === null ? actions.filter(isQuick).slice(0, MOST_ACTIONS) : [];
  return (
    <>
      {shown.map((action, index) => (
        <Button
          key={action}
          small
          kind={index === 0 ? "plain" : "quiet"}
          onClick={() => onAnswer?.(action)}
        >
          {actionLabel(action)}
        </Button>
      ))}
      <Button small kind={shown.length > 0 ? "quiet" : "plain"} onClick={onRead}>
        Read it first
      </Button>
    </>
  );
}

function isQuick(action: string): boolean {
  return action !== GIVE_RESULT;
}
