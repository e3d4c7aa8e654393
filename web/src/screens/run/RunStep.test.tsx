import { act, render, screen } from "@testing-library/react";
import { Profiler } from "react";
import { afterEach, expect, it, vi } from "vitest";
import { WebSocket } from "ws";
import { goldenRuns } from "@/stream/goldenRuns";
import { RunProvider } from "@/stream/RunProvider";
import { RunServer } from "@/stream/runServer";
import { RunStep } from "./RunStep";

const FOUND = goldenRuns().find((run) => run.name === "chain.json 1");
if (FOUND === undefined) throw new Error("there is no recorded chain");
const CHAIN = FOUND;
const NO_FOLDS = new Map();

afterEach(() => {
  vi.unstubAllGlobals();
  document.head.replaceChildren();
});

it("renders the card of a step only for what the card shows", async () => {
  const server = new RunServer({ events: CHAIN.events, snapshot: CHAIN.state, batch: 1 });
  const base = document.createElement("base");
  base.href = await server.listen();
  document.head.append(base);
  vi.stubGlobal("WebSocket", WebSocket);
  const shown = new Map<string, string[]>();
  const note = (path: string) => {
    const html = document.getElementById(path)?.innerHTML ?? "";
    shown.set(path, [...(shown.get(path) ?? []), html]);
  };
  const ignore = () => {};
  const steps = ["a", "b", "c"];
  render(
    <RunProvider executionId="x">
      {steps.map((path) => (
        <div key={path} id={path}>
          <Profiler id={path} onRender={note}>
            <RunStep
              {...{ path, folds: NO_FOLDS, selectedPath: null, isTabStop: false }}
              onSelect={ignore}
              onFold={ignore}
            />
          </Profiler>
        </div>
      ))}
    </RunProvider>,
  );
  await screen.findByRole("button", { name: /^c, completed/ });
  for (const path of steps) {
    const looks = shown.get(path) ?? [];
    expect(looks.length).toBeGreaterThan(1);
    expect(looks).toEqual(looks.filter((look, index) => look !== looks[index - 1]));
  }
  await act(() => server.close());
});
