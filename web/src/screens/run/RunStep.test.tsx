import { act, render, renderHook, screen } from "@testing-library/react";
import { Profiler } from "react";
import { afterEach, expect, it, vi } from "vitest";
import { WebSocket } from "ws";
import { goldenRuns } from "@/stream/goldenRuns";
import { RunProvider } from "@/stream/RunProvider";
import { RunServer } from "@/stream/runServer";
import { useNow } from "@/ui/useNow";
import { RunStep } from "./RunStep";

const FOUND = goldenRuns().find((run) => run.name === "chain.json 1");
if (FOUND === undefined) throw new Error("there is no recorded chain");
const CHAIN = FOUND;
const NO_FOLDS = new Map();

/** Tells each event on its own, as one that comes some frames after the one before. */
class SlowSocket extends WebSocket {
  constructor(url: string | URL) {
    super(url, { allowSynchronousEvents: false });
  }
}

afterEach(() => {
  vi.unstubAllGlobals();
  document.head.replaceChildren();
});

it("renders the card of a step that has ended no more while others run", async () => {
  // A card at work is rendered each second, too.
  vi.spyOn(Date, "now").mockReturnValue(Date.now());
  renderHook(() => useNow()).unmount();
  const snapshot = { ...CHAIN.state, last_seq: 0 };
  const server = new RunServer({ events: CHAIN.events, snapshot, batch: 1 });
  const base = document.createElement("base");
  base.href = await server.listen();
  document.head.append(base);
  vi.stubGlobal("WebSocket", SlowSocket);
  vi.stubGlobal("requestAnimationFrame", (draw: () => void) => queueMicrotask(draw));
  vi.stubGlobal("cancelAnimationFrame", () => {});
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
    expect(looks.join()).toMatch(/Pending.*Running.*Completed/);
    expect(looks.filter((look) => look.includes("Completed"))).toHaveLength(1);
  }
  await act(() => server.close());
});
