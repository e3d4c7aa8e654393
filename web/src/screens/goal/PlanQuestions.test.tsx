import { fireEvent, render, screen } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import { PlanAnswers, PlanQuestions } from "@/screens/goal/PlanQuestions";

const MARKET = {
  question: "Which <b>market</b>?",
  answer: "Germany",
  assumed: true,
  options: ["Germany", "Austria"],
};
const READER = { question: "Who reads it?", answer: "the board", assumed: true, options: [] };

function ask() {
  const [onTake, onAnswer] = [vi.fn(), vi.fn()];
  render(<PlanQuestions questions={[MARKET, READER]} onTake={onTake} onAnswer={onAnswer} />);
  return { onTake, onAnswer };
}

function write(question: string, value: string) {
  fireEvent.change(screen.getByRole("textbox", { name: question }), { target: { value } });
}

test("answers that are as assumed are taken, an emptied field too", () => {
  const { onTake, onAnswer } = ask();
  expect((screen.getByRole("textbox", { name: MARKET.question }) as HTMLInputElement).value).toBe(
    "Germany",
  );
  write(READER.question, " ");
  fireEvent.click(screen.getByRole("button", { name: "Take these answers" }));
  expect(onTake).toHaveBeenCalledOnce();
  expect(onAnswer).not.toHaveBeenCalled();
});

test("with one other answer all answers are sent", () => {
  const { onTake, onAnswer } = ask();
  fireEvent.click(screen.getByRole("button", { name: "Austria" }));
  screen.getByRole("button", { name: "Austria", pressed: true });
  fireEvent.click(screen.getByRole("button", { name: "Plan with these answers" }));
  expect(onAnswer).toHaveBeenCalledWith({
    [MARKET.question]: "Austria",
    [READER.question]: "the board",
  });
  write(MARKET.question, "Germany");
  fireEvent.click(screen.getByRole("button", { name: "Take these answers" }));
  expect(onTake).toHaveBeenCalledOnce();
});

test("above a plan each answer says whose it is", () => {
  const onChange = vi.fn();
  const told = { ...READER, assumed: false };
  render(<PlanAnswers questions={[MARKET, told]} onChange={onChange} />);
  expect(screen.getByText("assumed")).toBeTruthy();
  expect(screen.getByText("your answer")).toBeTruthy();
  fireEvent.click(screen.getByRole("button", { name: "Change an answer" }));
  expect(onChange).toHaveBeenCalledOnce();
});
