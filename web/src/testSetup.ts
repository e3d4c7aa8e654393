import { cleanup, configure } from "@testing-library/react";
import { afterEach } from "vitest";

// No test depends on how fast the machine is.
configure({ asyncUtilTimeout: 30_000 });
afterEach(cleanup);
