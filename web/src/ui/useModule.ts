import { useEffect, useState } from "react";

/** Returns a module that is loaded once it is needed; undefined until then. */
export function useModule<Module>(
  isNeeded: boolean,
  load: () => Promise<Module>,
): Module | undefined {
  const [module, setModule] = useState<Module>();
  // biome-ignore lint/correctness/useExhaustiveDependencies: it loads the same module each time
  useEffect(() => {
    if (!isNeeded || module) return;
    let isOpen = true;
    load().then(
      (loaded) => isOpen && setModule(loaded),
      // The text is shown without it; the service is away or was updated meanwhile.
      () => undefined,
    );
    return () => {
      isOpen = false;
    };
  }, [isNeeded, module]);
  return module;
}
