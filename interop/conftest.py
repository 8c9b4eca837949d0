"""Runs tests that are coroutines, each with a deadline, once per binding of the server.

For the tests of every Python client. Each brings an `agent` module with an `Agent` of its own.
"""

import asyncio
import inspect
import os

import pytest

DEADLINE = 30
BINDINGS = os.environ['A2AD_INTEROP_BINDINGS'].split(',')


@pytest.fixture(params=BINDINGS)
def agent(request):
    # The one beside the tests, which can be imported only once they are collected.
    from agent import Agent

    return Agent(os.environ['A2AD_INTEROP_URL'], request.param)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None

    async def test():
        wanted = inspect.signature(pyfuncitem.obj).parameters
        arguments = {name: pyfuncitem.funcargs[name] for name in wanted}
        async with arguments['agent']:
            await pyfuncitem.obj(**arguments)

    asyncio.run(asyncio.wait_for(test(), DEADLINE))
    return True
